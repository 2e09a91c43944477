// Rotary position embedding (Su et al. 2021).
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/matrix_view.h"
#include "engine/base/thread_team.h"
#include "engine/model/rotary_shape.h"

namespace attendant {

// A table of the cosines and sines, times the amplitude, of the angles at positions 0 to
// `positions` - 1: position * shape.frequencies[j] for pair j. Immutable and thread-safe.
class RotaryTable {
 public:
  RotaryTable(int64_t positions, const RotaryShape& shape);

  const RotaryShape& shape() const { return shape_; }
  const float* cosines(int64_t position) const { return table_.data() + position * shape_.width(); }
  const float* sines(int64_t position) const { return cosines(position) + shape_.width() / 2; }
  int64_t bytes() const { return table_.bytes(); }

 private:
  RotaryShape shape_;
  AlignedBuffer<float> table_;  // [positions, width]; each row has cosines, then sines
};

// Rotates the first table.shape().width() columns of every head in place. heads: [T, H *
// head_width], with row r at positions[r]. The bits of a row depend on the row and its position
// alone.
void Rotate(const ThreadTeam& team, const RotaryTable& table, absl::Span<const int32_t> positions,
            int64_t head_width, MatrixView<float> heads);

}  // namespace attendant
