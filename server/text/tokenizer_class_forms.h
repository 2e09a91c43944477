// The forms of tokenizer_classes.json, filled in with the settings of a checkpoint.
//
// In a form, "$NAME" stands for a flag of the class's "settings", a special token, a form that
// several classes have, or a value that FormWriter computes; in a list it may be several. Other
// names are INTERNAL errors. Null and missing elements are left out of lists. {"choose": [NAME, a,
// b]} is `a` if NAME is true or a value, otherwise `b`. {"id_of": TOKEN} is its id. {"template":
// [single, pair]} is a post-processor that adds the tokens among the words; A and B are the texts,
// and ":1" marks the words of the second text. The part "$file" is kept from tokenizer.json.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/text/base/json_fields.h"
#include "server/text/tokenizer.h"
#include "server/text/tokenizer_classes.h"
#include "server/text/tokenizer_settings.h"

namespace attendant::text {

// Returns the JSON of a part of tokenizer.json as the class builds it, or "" if it keeps the part
// of `file`. The part "model" has only its options.
absl::StatusOr<std::string> ClassPart(const TokenizerClass& known,
                                      const TokenizerSettings& settings, const Fields& file,
                                      absl::string_view key, const FindTokenId& find);

// Returns TokenizerSettings::AdditionalTokens as the class changes them.
absl::StatusOr<std::vector<AddedTokenSetting>> ClassTokens(const TokenizerClass& known,
                                                           const TokenizerSettings& settings);

// Turns the pieces of the settings' SentencePiece model into the class's vocabulary.
absl::Status ChangePieces(const TokenizerClass& known, TokenizerSettings& settings);

}  // namespace attendant::text
