// Rotary position embedding (Su et al. 2021).
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/matrix_view.h"
#include "engine/model/rotary_shape.h"

namespace attendant {

// A table of the cosines and sines of the angles position * shape.frequencies[j], times the
// amplitude, for positions in [0, positions). Immutable and thread-safe.
class RotaryTable {
 public:
  RotaryTable(int64_t positions, const RotaryShape& shape);

  const RotaryShape& shape() const { return shape_; }
  const float* cosines(int64_t position) const { return table_.data() + position * shape_.width(); }
  const float* sines(int64_t position) const { return cosines(position) + shape_.width() / 2; }
  int64_t bytes() const { return table_.bytes(); }

 private:
  RotaryShape shape_;
  AlignedBuffer<float> table_;  // [positions, width]; each row has all cosines, then all sines
};

// Rotates the first table.shape().width() columns of every head in place, on the calling thread.
// `heads` is [rows, H * head_width]; row r has the position positions[r]. The bits of a row depend
// only on the row and its position.
void Rotate(const RotaryTable& table, absl::Span<const int32_t> positions, int64_t head_width,
            MatrixView<float> heads);

}  // namespace attendant
