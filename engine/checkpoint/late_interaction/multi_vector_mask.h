// The tokens that count in late interaction.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/checkpoint/files/tokenization.h"

namespace attendant {

// Reads the selection of tokens from the file `path`, if it is there. Looks up words in
// tokenizer.json; like the library, skips a word that is not a token and adds a warning. With
// `skips_punctuation`, as in PyLate and Stanford's ColBERT, punctuation is skipped in documents if
// the file has no list and does not say otherwise.
absl::Status ReadMultiVectorMask(const std::string& path, bool skips_punctuation,
                                 Tokenization& tokenization, std::vector<std::string>& warnings);

}  // namespace attendant
