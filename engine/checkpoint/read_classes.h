// Names and scores of the classes of a model's head, by its config.json.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "engine/checkpoint/files/tokenization.h"

namespace attendant {

// Sets labels, class_scores and rank_scores by `transformer`/config.json, and by the activation
// that a CrossEncoder of sentence-transformers has stored there or in `folder`. `of_sequences` and
// `of_tokens` are the numbers of classes that the heads of the model score; 0: it has no such head.
// Those of tokens only count if there are none of sequences. INVALID_ARGUMENT: a
// problem_type that the library does not know, or an activation that clients do not know.
absl::Status ReadClasses(const std::string& folder, const std::string& transformer,
                         int64_t of_sequences, int64_t of_tokens, Tokenization& read);

}  // namespace attendant
