// Formulas of relative positions in attention, from the code of the papers.
#pragma once

#include <cstdint>
#include <vector>

namespace attendant::reference {

// Returns T5's bucket of a distance, which is key position minus query position.
int64_t Bucket(int64_t relative, int64_t buckets, int64_t max_distance);

// Returns DeBERTa's row of a distance, which is query position minus key position. Without buckets
// each distance has its own row.
int64_t DistanceRow(int64_t distance, int64_t buckets, int64_t max_distance);

// Returns ALiBi's slopes, one for each head.
std::vector<double> AlibiSlopes(int64_t heads);

}  // namespace attendant::reference
