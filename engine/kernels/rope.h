// Rotary position embedding (Su et al. 2021).
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/matrix_view.h"
#include "engine/base/thread_team.h"
#include "engine/model/layer_kinds.h"

namespace attendant {

// A table of the cosines and sines of the angles at positions 0 to `positions` - 1: pair j of
// `width` / 2 is rotated by position / (stretch theta^(2 j / width)). Immutable and thread-safe.
class RotaryTable {
 public:
  RotaryTable(int64_t positions, int64_t width, float theta, float stretch = 1);

  int64_t width() const { return width_; }
  float theta() const { return theta_; }
  const float* cosines(int64_t position) const { return table_.data() + position * width_; }
  const float* sines(int64_t position) const { return cosines(position) + width_ / 2; }
  int64_t bytes() const { return table_.bytes(); }

 private:
  int64_t width_;
  float theta_;
  AlignedBuffer<float> table_;  // [positions, width]; each row has cosines, then sines
};

// Rotates the first table.width() columns of every head in place. heads: [T, H * head_width], with
// row r at positions[r]. The bits of a row depend on the row and its position alone.
void Rotate(const ThreadTeam& team, const RotaryTable& table, RotaryPairs pairs,
            absl::Span<const int32_t> positions, int64_t head_width, MatrixView<float> heads);

}  // namespace attendant
