// The classes of transformers that take the vocabulary from tokenizer.json, and build the rest of a
// tokenizer by themselves, with settings beside the file.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/text/base/json_fields.h"
#include "server/text/tokenizer.h"
#include "server/text/tokenizer_settings.h"

namespace attendant::text {

struct TokenizerClass {
  absl::string_view name;         // without "Fast"
  absl::string_view model;        // the type of model that it builds
  absl::string_view model_types;  // those of config.json that it belongs to, separated by commas
  absl::string_view special;      // its special tokens: "cls_token=[CLS] …"
  // Sets all parts but the vocabulary and the added tokens.
  absl::Status (*parts)(const TokenizerSettings& settings, const Fields& file,
                        TokenizerOverrides& parts);
  // Adds special tokens; null: it adds no more.
  void (*more_tokens)(const TokenizerSettings& settings, TokenizerOverrides& parts) = nullptr;
  // Special tokens lose the flags that the settings give them.
  bool resets_special_flags = false;
};

// The class that transformers chooses for a checkpoint, as AutoTokenizer does; null if that uses
// tokenizer.json as it is.
const TokenizerClass* FindTokenizerClass(const TokenizerSettings& settings,
                                         absl::string_view tokenizer_json);

// Refuses classes that split texts by code of their own, which no file describes.
absl::Status CheckNeedsNoOwnCode(const TokenizerSettings& settings);

// The class of BERT, which is that of a vocab.txt if the settings name none.
const TokenizerClass& BertClass();

// A special token of a class, or of the settings.
std::optional<AddedTokenSetting> SpecialTokenOf(const TokenizerSettings& settings,
                                                const TokenizerClass* known, absl::string_view key);

}  // namespace attendant::text
