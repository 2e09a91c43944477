// Attention with a cost proportional to the length. Linear attention folds the keys and values of a
// head into a matrix that queries read; Linformer mixes them into a fixed number of rows.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "engine/base/matrix_view.h"

namespace attendant {

// The inputs and the output of one head of one sequence.
struct LinearHead {
  MatrixView<const float> queries;  // [queries, Dk], from first_query on
  MatrixView<const float> keys;     // [length, Dk]
  MatrixView<const float> values;   // [length, Dv]
  MatrixView<float> context;        // [queries, Dv]
  float scale;
  bool causal;              // whether a query reads only keys up to its own
  int64_t first_query = 0;  // index in the sequence of row 0 of `queries`
  // The state after earlier chunks of the sequence. Null if there are none.
  const float* before = nullptr;
};

// Computes context = scale Q (K^T V) in float32, token by token, so a row's bits depend only on its
// sequence. `state`, LinearStateSize floats aligned to 64 bytes, receives the state after these
// keys and values. Passing it as `before` with the next chunk gives the same bits as computing the
// whole sequence at once.
void AttendLinearHead(const LinearHead& head, float* state);

// The factors of a mix of the rows of a sequence. Columns are positions relative to the first row.
struct RowMixing {
  int64_t Position(int64_t row) const {
    return positions.empty() ? row : positions[row] - positions[0];
  }

  MatrixView<const float> factors;      // [k, positions]
  absl::Span<const int32_t> positions;  // of the rows; if empty, 0, 1, 2, …
};

// Computes mixed [k, columns] = factors rows, in the order of the rows. Positions without a row are
// zero.
void MixRows(const RowMixing& mixing, MatrixView<const float> rows, MatrixView<float> mixed);

}  // namespace attendant
