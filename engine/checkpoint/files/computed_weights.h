// Weights that are computed each time they are read.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "engine/model/weight_source.h"

namespace attendant {

// Computes one weight, of which `target` has exactly the number of elements, from the weights of
// `source`.
using ComputeWeight = std::function<absl::Status(WeightSource& source, absl::Span<float> target)>;

// By the canonical names of the weights.
using ComputedWeights = absl::flat_hash_map<std::string, ComputeWeight>;

// Returns a source of the computed weights, and of all others of `source`. If `source` is null,
// there are no others. Not thread-safe.
std::unique_ptr<WeightSource> WithComputed(ComputedWeights computed,
                                           std::unique_ptr<WeightSource> source);

}  // namespace attendant
