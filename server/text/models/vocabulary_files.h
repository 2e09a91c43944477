// The vocabularies of checkpoints without tokenizer.json, as tools older than that file leave them.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attendant::text {

// Return the tokenizer.json of the vocabulary, which has a model and nothing else. Both read the
// files as transformers does. INVALID_ARGUMENT: a file is not UTF-8, vocab.json is no object, or a
// line of merges.txt is no pair.

// WordPiece, of a vocab.txt with one token on each line.
absl::StatusOr<std::string> WordPieceJson(absl::string_view vocab_txt);

// BPE, of a vocab.json with the id of each token, and a merges.txt with one pair on each line, and
// perhaps a line that begins with "#version".
absl::StatusOr<std::string> BpeJson(absl::string_view vocab_json, absl::string_view merges_txt);

}  // namespace attendant::text
