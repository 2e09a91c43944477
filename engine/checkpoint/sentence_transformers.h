// What sentence-transformers adds to a checkpoint: modules.json, and a folder for each module.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "engine/checkpoint/files/opened_checkpoint.h"
#include "engine/checkpoint/files/weight_binder.h"

namespace attendant {

// The modules of modules.json: Transformer, then optionally Pooling, Dense and Normalize, in this
// order. Paths are folders with the files.
struct SentenceModules {
  std::string transformer;
  std::string pooling;  // empty: none
  std::string dense;    // empty: none
  bool normalize = false;
};

// Nothing if the folder has no modules.json. A module of another type, or in another place, is
// refused.
absl::StatusOr<std::optional<SentenceModules>> ReadSentenceModules(const std::string& folder);

// Describes the pooling of hidden states with `hidden_size` columns; nothing if there is no
// Pooling. The weights of a Dense module are added to `binder` behind kDensePrefix.
absl::StatusOr<std::optional<PoolingDescription>> ReadSentencePooling(
    const SentenceModules& modules, int64_t hidden_size, const CheckpointOptions& options,
    WeightBinder& binder);

inline constexpr char kDensePrefix[] = "Dense/";

}  // namespace attendant
