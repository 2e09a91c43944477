#include "engine/kernels/rope.h"

#include <cmath>

// foreach_target.h comes before whatever it includes once per target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/rope.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "engine/kernels/simd-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace attendant {
namespace HWY_NAMESPACE {
namespace {

// Computes low' = low cos - high sin and high' = high cos + low sin for `pairs` pairs.
void RotateHalves(const float* cosines, const float* sines, int64_t pairs, float* low) {
  float* high = low + pairs;
  for (int64_t j = 0; j < pairs; j += static_cast<int64_t>(kLanes)) {
    const int64_t left = pairs - j;
    const Floats cosine = LoadUpTo(cosines + j, left), sine = LoadUpTo(sines + j, left);
    const Floats x = LoadUpTo(low + j, left), y = LoadUpTo(high + j, left);
    StoreUpTo(hn::NegMulAdd(y, sine, hn::Mul(x, cosine)), low + j, left);
    StoreUpTo(hn::MulAdd(x, sine, hn::Mul(y, cosine)), high + j, left);
  }
}

void RotateInterleaved(const float* cosines, const float* sines, int64_t pairs, float* head) {
  for (int64_t j = 0; j < pairs; ++j, head += 2) {
    const float x = head[0], y = head[1];
    head[0] = x * cosines[j] - y * sines[j];
    head[1] = y * cosines[j] + x * sines[j];
  }
}

void RotateRow(const RotaryTable& table, int32_t position, int64_t head_width,
               MatrixView<float> row) {
  const float* cosines = table.cosines(position);
  const float* sines = table.sines(position);
  const int64_t count = table.shape().width() / 2;
  for (float* head = row.data; head < row.data + row.cols; head += head_width) {
    if (table.shape().pairs == RotaryPairs::kHalves) {
      RotateHalves(cosines, sines, count, head);
    } else {
      RotateInterleaved(cosines, sines, count, head);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace attendant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attendant {
namespace {

HWY_EXPORT(RotateRow);

}  // namespace

RotaryTable::RotaryTable(int64_t positions, const RotaryShape& shape)
    : shape_(shape), table_(positions * shape.width()) {
  const int64_t width = shape.width(), pairs = width / 2;
  for (int64_t j = 0; j < pairs; ++j) {
    for (int64_t position = 0; position < positions; ++position) {
      const double angle = static_cast<double>(position) * shape.frequencies[j];
      table_[position * width + j] = static_cast<float>(std::cos(angle) * shape.amplitude);
      table_[position * width + pairs + j] = static_cast<float>(std::sin(angle) * shape.amplitude);
    }
  }
}

void Rotate(const RotaryTable& table, absl::Span<const int32_t> positions, int64_t head_width,
            MatrixView<float> heads) {
  for (int64_t r = 0; r < heads.rows; ++r) {
    HWY_DYNAMIC_DISPATCH(RotateRow)(table, positions[r], head_width, heads.Rows(r, 1));
  }
}

}  // namespace attendant
#endif  // HWY_ONCE
