// The vocabulary files of older tools, for checkpoints without tokenizer.json.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant::text {

// Return a tokenizer.json for the vocabulary, which contains only a model. Both read the files like
// transformers. Return INVALID_ARGUMENT if a file is not UTF-8, vocab.json is not an object, or a
// line of merges.txt is not a pair.

// WordPiece, from a vocab.txt with one token per line.
absl::StatusOr<std::string> WordPieceJson(absl::string_view vocab_txt);

// BPE, from a vocab.json with the id of each token and a merges.txt with one pair per line,
// optionally with a line that begins with "#version".
absl::StatusOr<std::string> BpeJson(absl::string_view vocab_json, absl::string_view merges_txt);

}  // namespace attendant::text
