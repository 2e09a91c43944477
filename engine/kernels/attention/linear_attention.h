// Attention whose cost grows with the length alone: of one head, keys and values leave behind a
// matrix that queries read, or are mixed into a fixed number of rows.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "engine/base/matrix_view.h"
#include "engine/model/layer_kinds.h"

namespace attendant {

// The operands of one head of one sequence.
struct LinearHead {
  MatrixView<const float> queries;  // [queries, Dk]: those from first_query on
  MatrixView<const float> keys;     // [length, Dk]
  MatrixView<const float> values;   // [length, Dv]
  MatrixView<float> context;        // [queries, Dv]
  float scale;
  bool causal;              // a query reads the keys up to itself alone
  int64_t first_query = 0;  // index in the sequence of queries' row 0
  // The state that other keys and values have left before these; or null: none have.
  const float* before = nullptr;
};

// context = scale Q (K^T V), in float32, token by token: a row's bits depend on nothing but its
// sequence. `state` has LinearStateSize floats, aligned to 64 bytes; it receives what the keys and
// values that were read leave behind. Queries that find it so have the bits that they would have in
// one sequence with those before.
void AttendLinearHead(const LinearHead& head, float* state);

// Factors [k, positions] on the rows of a sequence, by their positions counted from the first
// row's.
struct RowMixing {
  int64_t Position(int64_t row) const {
    return positions.empty() ? row : positions[row] - positions[0];
  }

  MatrixView<const float> factors;
  absl::Span<const int32_t> positions;  // of the rows; or empty: 0, 1, 2, …
};

// mixed [k, columns] = factors rows, in the order of the rows; positions without a row count as
// zeros.
void MixRows(const RowMixing& mixing, MatrixView<const float> rows, MatrixView<float> mixed);

}  // namespace attendant
