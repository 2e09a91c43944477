// Pooling: one vector per sequence.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "engine/base/matrix_view.h"
#include "engine/model/model_description.h"

namespace attendant {

// Pools one sequence by the formulas of sentence-transformers' Pooling module, with float64 sums.
// `hidden_states` [length, E] are the kept rows in order. `positions` [length] is the 0-based index
// of each row in the padded sequence, or empty for 0, 1, …; only kPositionWeightedMean and
// kFeatureMean read it. kFeatureMean skips the rows at fewer than `prefix_tokens` positions from
// the first row. `target` is [modes * E]. A mode without rows to pool writes zeros.
void Pool(absl::Span<const PoolingMode> modes, MatrixView<const float> hidden_states,
          absl::Span<const int32_t> positions, absl::Span<float> target, int64_t prefix_tokens = 0);

// Returns the number of tokens of a sequence that the pooling includes: all up to its end_id,
// without tokens with its padding_id at the end. The first token always counts.
int64_t TokensToEnd(const PoolingDescription& pooling, absl::Span<const int32_t> ids);

// If the modes read only some of the rows [begin, begin + length) of a sequence, appends those rows
// to `rows` in ascending order and returns true. If they read all rows, returns false.
bool AppendPooledRows(absl::Span<const PoolingMode> modes, int64_t begin, int64_t length,
                      std::vector<int32_t>& rows);

// Divides `vector` by max(|vector|, 1e-12), in place.
void NormalizeToUnitLength(absl::Span<float> vector);

}  // namespace attendant
