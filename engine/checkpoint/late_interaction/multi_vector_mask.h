// The tokens that count in late interaction.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/checkpoint/files/tokenization.h"

namespace attendant {

// The file that selects them.
struct MaskFile {
  enum class Kind {
    kModule,   // the config.json of a MultiVectorMask
    kPylate,   // config_sentence_transformers.json
    kStanford  // artifact.metadata, which may be absent
  };
  std::string path;  // empty: none, so that all tokens count
  Kind kind = Kind::kModule;
};

// Reads the selection of tokens. Looks up words in tokenizer.json; like the library, skips a word
// that is not a token and adds a warning. A file of kModule may be absent.
absl::Status ReadMultiVectorMask(const MaskFile& file, Tokenization& tokenization,
                                 std::vector<std::string>& warnings);

}  // namespace attendant
