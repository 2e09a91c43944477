// Pooling: one vector per sequence; and the head of each token.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "engine/base/matrix_view.h"
#include "engine/layers/encoder.h"
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

// For a sequence with rows [begin, begin + length): if the modes use only some rows, appends these
// to `rows` in ascending order and returns true; if they use all rows, returns false.
bool AppendPooledRows(absl::Span<const PoolingMode> modes, int64_t begin, int64_t length,
                      std::vector<int32_t>& rows);

// Divides `vector` by max(|vector|, 1e-12), in place.
void NormalizeToUnitLength(absl::Span<float> vector);

// Computes the checkpoint's own pooling: modes, linear layers and norm. The model must have
// pooling. target: [pooling->width(E)]; zeros for length 0. Thread-safe.
void PoolAsDescribed(const Encoder& encoder, MatrixView<const float> hidden_states,
                     absl::Span<const int32_t> positions, absl::Span<float> target);

// Computes the scores of the model's classification head, one for each class. The model must have
// such a head. Thread-safe.
void Classify(const Encoder& encoder, MatrixView<const float> hidden_states,
              absl::Span<const int32_t> positions, absl::Span<float> target);

// Applies the model's token head to the hidden states of one token, [E]. The model must have such a
// head. target: [token_head->width(E)]. Thread-safe.
void ApplyTokenHead(const Encoder& encoder, absl::Span<const float> hidden_states,
                    absl::Span<float> target);

}  // namespace attendant
