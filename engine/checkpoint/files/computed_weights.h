// Weights that are computed each time they are read.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "engine/model/weight_source.h"

namespace attendant {

struct ComputedWeight {
  int64_t elements = 0;
  // Computes the weight from the weights of `source`. `target` has exactly its elements.
  std::function<absl::Status(WeightSource& source, absl::Span<float> target)> compute;
};

// By the canonical names of the weights.
using ComputedWeights = absl::flat_hash_map<std::string, ComputedWeight>;

// Returns a source of the computed weights, and of all others of `source`. If `source` is null,
// there are no others. INVALID_ARGUMENT: a computed weight is read into a target of another size.
// Not thread-safe.
std::unique_ptr<WeightSource> WithComputed(ComputedWeights computed,
                                           std::unique_ptr<WeightSource> source);

}  // namespace attendant
