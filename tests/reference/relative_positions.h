// What positions in the attention mean, from the papers' own code.
#pragma once

#include <cstdint>
#include <vector>

namespace attendant::reference {

// T5's bucket of a distance: key position minus query position.
int64_t Bucket(int64_t relative, int64_t buckets, int64_t max_distance);

// DeBERTa's row of a distance: query position minus key position. No buckets: one row for each
// distance.
int64_t DistanceRow(int64_t distance, int64_t buckets, int64_t max_distance);

// ALiBi's, one for each head.
std::vector<double> AlibiSlopes(int64_t heads);

}  // namespace attendant::reference
