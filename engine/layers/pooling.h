// Pooling: one vector per sequence.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "engine/base/matrix_view.h"
#include "engine/model/model_description.h"

namespace attendant {

// Pools one sequence, by the formulas of sentence-transformers' Pooling module, with float64 sums.
// hidden_states: [length, E], the kept rows in order. positions: [length], the 0-based index of
// each row in the padded sequence; empty for 0, 1, …. Only kPositionWeightedMean and kFeatureMean
// use it. prefix_tokens: the number of rows that the model puts before the features; kFeatureMean
// leaves out the rows whose distance from the first is smaller. target: [modes * E]. Without a row
// to pool, a mode gives zeros.
void Pool(absl::Span<const PoolingMode> modes, MatrixView<const float> hidden_states,
          absl::Span<const int32_t> positions, absl::Span<float> target, int64_t prefix_tokens = 0);

// Pools one sequence for the model's head, kPooling or kClassifier, which must not attend;
// Encoder::Pool is for all heads. target: [input_width(E)].
void PoolForHead(const ModelDescription& model, HeadKind head,
                 MatrixView<const float> hidden_states, absl::Span<const int32_t> positions,
                 absl::Span<float> target);

// Returns how many tokens of a sequence with these ids the pooling takes: the tokens up to its
// end_id.
int64_t TokensToEnd(const PoolingDescription& pooling, absl::Span<const int32_t> ids);

// For a sequence with rows [begin, begin + length): if the modes use only some rows, appends these
// to `rows` in ascending order and returns true; if they use all rows, returns false.
bool AppendPooledRows(absl::Span<const PoolingMode> modes, int64_t begin, int64_t length,
                      std::vector<int32_t>& rows);

// Divides `vector` by max(|vector|, 1e-12), in place.
void NormalizeToUnitLength(absl::Span<float> vector);

}  // namespace attendant
