// Attention with a cost proportional to the length. Linear attention folds the keys and values of a
// head into a matrix that queries read; Linformer mixes them into a fixed number of rows.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "engine/base/matrix_view.h"
#include "engine/kernels/attention/attention_block.h"

namespace attendant {

// Computes context = scale Q (K^T V) of the block in float32, token by token, so a row's bits
// depend only on its sequence. `before` is the state after earlier chunks of the sequence, or null
// if there are none. `state`, LinearStateSize floats aligned to 64 bytes, receives the state after
// these keys and values. Passing it as `before` with the next chunk gives the same bits as
// computing the whole sequence at once.
void AttendLinearHead(const AttentionBlock& block, const float* before, float* state);

// Computes mixed [k, columns] = factors rows, in the order of the rows. `factors` is [k,
// positions]; its columns are positions relative to the first row. `positions` are the positions of
// the rows; if empty, 0, 1, 2, …. Positions without a row are zero.
void MixRows(MatrixView<const float> factors, absl::Span<const int32_t> positions,
             MatrixView<const float> rows, MatrixView<float> mixed);

}  // namespace attendant
