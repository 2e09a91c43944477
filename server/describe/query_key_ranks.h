// Ranks of query-key products: how much of a head's width they use.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/model/model_description.h"
#include "engine/model/weight_source.h"

namespace attendant::server {

// Ranks of the product W_Q^T W_K [E, E] of a weight set (E is the inner width of a bottleneck): how
// many of the largest singular values hold 90 % of the sum of squares.
struct QueryKeyRanks {
  std::vector<int64_t> heads;  // of each head's product, at most Dk
  int64_t concatenated = 0;    // of all heads concatenated, at most min(E, H Dk)
};

// Wider models are not measured: the products have E^2 elements and cost E^3.
inline constexpr int64_t kWidestRanks = 2048;

// Returns the ranks of every weight set, OUT_OF_RANGE for a wider model, INVALID_ARGUMENT for a
// model without projections, or errors of reading.
absl::StatusOr<std::vector<QueryKeyRanks>> MeasureQueryKeyRanks(const ModelDescription& model,
                                                                WeightSource& weights);

}  // namespace attendant::server
