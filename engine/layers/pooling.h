// One vector per sequence.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "engine/base/matrix_view.h"
#include "engine/layers/encoder.h"
#include "engine/model/model_description.h"

namespace attendant {

// Pools one sequence. hidden_states: [length, E], its kept rows in order. positions: [length],
// 0-based index of each in the padded row, or empty: 0, 1, …; only kPositionWeightedMean and
// kFeatureMean look at it. prefix_tokens: how many the model has; kFeatureMean leaves out the rows
// that are less than so many positions from the first. target: [modes E]. A mode without a row
// gives zeros. Formulas: sentence-transformers' Pooling module; sums in float64.
void Pool(absl::Span<const PoolingMode> modes, MatrixView<const float> hidden_states,
          absl::Span<const int32_t> positions, absl::Span<float> target, int64_t prefix_tokens = 0);

// Appends to `rows` those of a sequence with rows [begin, begin + length) that the modes look at,
// ascending, and returns true; false if they look at all.
bool AppendPooledRows(absl::Span<const PoolingMode> modes, int64_t begin, int64_t length,
                      std::vector<int32_t>& rows);

// vector / max(|vector|, 1e-12), in place.
void NormalizeToUnitLength(absl::Span<float> vector);

// All of the checkpoint's own pooling: modes, linear layers, norm. The model must have pooling.
// target: [pooling->width(E)]; zeros for length 0. Thread-safe.
void PoolAsDescribed(const Encoder& encoder, MatrixView<const float> hidden_states,
                     absl::Span<const int32_t> positions, absl::Span<float> target);

// The same of its classification head, which it must have: a score for each class.
void Classify(const Encoder& encoder, MatrixView<const float> hidden_states,
              absl::Span<const int32_t> positions, absl::Span<float> target);

}  // namespace attendant
