// Classes of transformers that take the vocabulary from tokenizer.json but build the rest of the
// tokenizer themselves, from other settings files.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/text/base/json_fields.h"
#include "server/text/tokenizer.h"
#include "server/text/tokenizer_settings.h"

namespace attendant::text {

struct TokenizerClass {
  absl::string_view name;         // without "Fast"
  absl::string_view model;        // the type of the model that it builds
  absl::string_view model_types;  // its model types in config.json, separated by commas
  absl::string_view special;      // its special tokens: "cls_token=[CLS] …"
  // Sets all parts except the vocabulary and the added tokens.
  absl::Status (*parts)(const TokenizerSettings& settings, const Fields& file,
                        TokenizerOverrides& parts);
  // Changes TokenizerSettings::AdditionalTokens; null leaves them.
  void (*change_tokens)(const TokenizerSettings& settings,
                        std::optional<std::vector<AddedTokenSetting>>& tokens) = nullptr;
  // Special tokens lose the flags given by the settings.
  bool resets_special_flags = false;
  // The flags of its mask token unless the settings give any.
  AddedTokenFlags mask_flags = {};
  // The model reads which tokens are of the second text, unless model_input_names says otherwise.
  bool has_types = false;
  // The SentencePiece model that it reads without tokenizer.json; empty if none.
  absl::string_view sentence_piece = "";
  // Turns the pieces of that model into its vocabulary; null leaves them.
  absl::Status (*pieces)(const TokenizerSettings& settings, SentencePieceModel& model) = nullptr;
};

// Returns the class that AutoTokenizer of transformers chooses for a checkpoint; null if it uses
// tokenizer.json unchanged.
const TokenizerClass* FindTokenizerClass(const TokenizerSettings& settings,
                                         absl::string_view tokenizer_json);

// Returns the class that the files name, such as "BertTokenizerFast".
std::optional<std::string> ClassName(const TokenizerSettings& settings);

// Refuses classes that split texts by their own code, which no file describes.
absl::Status CheckNeedsNoOwnCode(const TokenizerSettings& settings);

// Returns the class of BERT, the default for vocab.txt.
const TokenizerClass& BertClass();

// Returns a special token of the settings or of a class.
std::optional<AddedTokenSetting> SpecialTokenOf(const TokenizerSettings& settings,
                                                const TokenizerClass* known, absl::string_view key);

}  // namespace attendant::text
