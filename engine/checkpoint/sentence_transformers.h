// The files that sentence-transformers adds to a checkpoint: modules.json, and a folder for each
// module.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "engine/checkpoint/files/opened_checkpoint.h"
#include "engine/checkpoint/files/weight_binder.h"

namespace attendant {

// The modules that modules.json lists: a Transformer, then optionally Pooling, Dense and Normalize,
// in this order, or SpladePooling alone. The paths are the folders with their files. Without
// Pooling, Dense and Normalize are about the vectors of tokens (late interaction, such as ColBERT).
struct SentenceModules {
  std::string transformer;
  std::string pooling;  // empty if there is none
  std::string dense;    // empty if there is none
  bool normalize = false;
  std::string splade_pooling;  // empty if there is none
};

// Returns nothing if the folder has no modules.json. Refuses other types of modules and any other
// order with INVALID_ARGUMENT.
absl::StatusOr<std::optional<SentenceModules>> ReadSentenceModules(const std::string& folder);

// Describes the pooling of hidden states with the model's hidden size, or, without a Pooling
// module, the token head that a Dense module is. The weight files of that are added to `binder`
// under kDensePrefix.
absl::Status ReadSentenceHeads(const SentenceModules& modules, const CheckpointOptions& options,
                               ModelDescription& model, WeightBinder& binder);

// Reads what a SpladePooling module, which there must be, makes of the logits of a masked language
// model with `vocabulary` words.
absl::Status ReadSpladePooling(const SentenceModules& modules, int64_t vocabulary,
                               VocabularyHeadShape& head);

inline constexpr char kDensePrefix[] = "Dense/";

}  // namespace attendant
