// Classes of transformers that take the vocabulary from tokenizer.json but build the rest of the
// tokenizer themselves, from other settings files. tokenizer_classes.json describes them.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/text/base/json_tree.h"
#include "server/text/tokenizer.h"
#include "server/text/tokenizer_settings.h"

namespace attendant::text {

struct TokenizerClass {
  std::string name;  // without "Fast"
  JsonValue own;
  std::optional<JsonValue> base;  // of the class that it is like

  // Returns the class's value of a key, which may be null, or else the value of `base`.
  std::optional<JsonValue> Find(absl::string_view key) const;
  std::string Text(absl::string_view key) const;  // "" if absent
  bool Flag(absl::string_view key) const;         // false if absent
};

// Returns the class that AutoTokenizer of transformers chooses for a checkpoint; null if it uses
// tokenizer.json unchanged.
const TokenizerClass* FindTokenizerClass(const TokenizerSettings& settings,
                                         absl::string_view tokenizer_json);

// Returns the class that the files name, such as "BertTokenizerFast".
std::optional<std::string> ClassName(const TokenizerSettings& settings);

// Refuses classes that split texts by their own code, which no file describes.
absl::Status CheckNeedsNoOwnCode(const TokenizerSettings& settings);

// Refuses classes that replace parts of tokenizer.json in ways that are not described here.
absl::Status CheckReplacesNoUnknownParts(const TokenizerSettings& settings);

// Returns the class of BERT, the default for vocab.txt.
const TokenizerClass& BertClass();

// Returns a form that several classes have, by its name.
std::optional<JsonValue> SharedForm(absl::string_view name);

// Returns a special token of the settings or of a class.
std::optional<AddedTokenSetting> SpecialTokenOf(const TokenizerSettings& settings,
                                                const TokenizerClass* known, absl::string_view key);

}  // namespace attendant::text
