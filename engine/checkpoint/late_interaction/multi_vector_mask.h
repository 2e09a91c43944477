// The tokens that count in late interaction.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/checkpoint/files/tokenization.h"

namespace attendant {

// The kinds of files that select skipped tokens, by a list of words or as punctuation.
enum class MaskFile {
  kModule,    // the config.json of a MultiVectorMask: the list
  kPylate,    // config_sentence_transformers.json: the list; without one, punctuation
  kStanford,  // artifact.metadata: punctuation, unless mask_punctuation is false
};

// Reads the selection of tokens from the file `path`, if it is there. Looks up words in
// tokenizer.json; like the library, skips a word that is not a token and adds a warning.
absl::Status ReadMultiVectorMask(const std::string& path, MaskFile kind, Tokenization& tokenization,
                                 std::vector<std::string>& warnings);

}  // namespace attendant
