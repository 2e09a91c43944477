// Names and scores of the classes of a model's head, by its config.json.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "engine/checkpoint/files/tokenization.h"

namespace attendant {

// The numbers of classes that the heads of a model score; 0: it has no such head.
struct ClassCounts {
  int64_t of_sequences = 0;
  int64_t of_tokens = 0;  // only count if there are none of sequences
};

// Sets labels, class_scores and rank_scores by `transformer`/config.json, and by the activation
// that a CrossEncoder of sentence-transformers has stored there or in `folder`. INVALID_ARGUMENT: a
// problem_type that the library does not know, or an activation that clients do not know.
absl::Status ReadClasses(const std::string& folder, const std::string& transformer,
                         const ClassCounts& classes, Tokenization& read);

}  // namespace attendant
