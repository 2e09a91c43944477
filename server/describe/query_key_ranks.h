// Ranks of the products that compare queries with keys: how much of a head's width they use.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/model/model_description.h"
#include "engine/model/weight_source.h"

namespace attendant::server {

// The ranks of the product W_Q^T W_K [E, E] (E is the width inside a bottleneck, if there is one)
// of a weight set's projections: how many of its largest singular values hold 90 % of the sum of
// their squares.
struct QueryKeyRanks {
  std::vector<int64_t> heads;  // of each head's product alone, out of Dk
  int64_t concatenated = 0;    // of all heads side by side, out of min(E, H Dk)
};

// Wider models are not measured: the products have E^2 elements and cost E^3.
inline constexpr int64_t kWidestRanks = 2048;

// The ranks of every weight set. OUT_OF_RANGE for a wider model, INVALID_ARGUMENT for one that does
// not project; errors of reading.
absl::StatusOr<std::vector<QueryKeyRanks>> MeasureQueryKeyRanks(const ModelDescription& model,
                                                                WeightSource& weights);

}  // namespace attendant::server
