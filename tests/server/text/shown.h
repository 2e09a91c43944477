// Steps of tokenizing as short texts: "a0:1 b1:2" are the items or tokens a and b, of the
// characters [0, 1) and [1, 2) of the original.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace attendant::text {

// What a normalizer makes of a text; spaces are shown as "_".
std::string ShowNormalized(const std::string& json, absl::string_view text);

// The pieces that a pre-tokenizer makes, with "|" between them, or with places.
std::string ShowPieces(const std::string& json, absl::string_view text, bool places = false);

// The tokens that a model makes of a piece: "text0:1". Its vocabulary has to be an object.
std::string ShowTokens(const std::string& json, absl::string_view piece);

// The ids and places that a tokenizer gives a text: "3 0:1".
std::string ShowEncoding(const std::string& tokenizer_json, absl::string_view text);

// A tokenizer of words, with ids in their order after U, which is unknown.
std::string WordTokenizer(absl::string_view words, absl::string_view added_tokens,
                          absl::string_view normalizer = "null");

// An added token with some flags of "single_word lstrip rstrip normalized".
std::string Added(uint32_t id, absl::string_view content, absl::string_view flags = "");

// A "Precompiled" normalizer with a few of the replacements of SentencePiece's nmt_nfkc.
std::string SmallCharsmap();

}  // namespace attendant::text
