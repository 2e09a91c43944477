#include "engine/kernels/column_max.h"

#include <cstdint>

// foreach_target.h comes before whatever it includes once per target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/column_max.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "engine/kernels/simd-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace attendant {
namespace HWY_NAMESPACE {
namespace {

constexpr int kVectors = 8;  // vectors of maxima that are in registers at a time
constexpr int64_t kColumns = kVectors * static_cast<int64_t>(kLanes);

// Hardware maxima return the second argument if either is NaN, which loses a NaN in the first.
HWY_INLINE Floats Larger(Floats value, Floats so_far) {
  return hn::IfThenElse(hn::Or(hn::Gt(value, so_far), hn::IsNaN(value)), value, so_far);
}

// Computes the columns [first, first + kColumns).
HWY_INLINE void RaiseColumns(MatrixView<const float> x, int64_t first, float* target) {
  const FloatTag d;
  Floats largest[kVectors];
  for (int v = 0; v < kVectors; ++v) largest[v] = hn::LoadU(d, target + first + v * kLanes);
  for (int64_t r = 0; r < x.rows; ++r) {
    const float* row = x.row(r) + first;
    for (int v = 0; v < kVectors; ++v) {
      largest[v] = Larger(hn::LoadU(d, row + v * kLanes), largest[v]);
    }
  }
  for (int v = 0; v < kVectors; ++v) hn::StoreU(largest[v], d, target + first + v * kLanes);
}

// Computes `count` <= kLanes columns from `first` on.
HWY_INLINE void RaiseLastColumns(MatrixView<const float> x, int64_t first, size_t count,
                                 float* target) {
  Floats largest =
      count == kLanes ? hn::LoadU(FloatTag(), target + first) : LoadFirst(target + first, count);
  for (int64_t r = 0; r < x.rows; ++r) {
    const float* row = x.row(r) + first;
    largest = Larger(count == kLanes ? hn::LoadU(FloatTag(), row) : LoadFirst(row, count), largest);
  }
  if (count == kLanes) return hn::StoreU(largest, FloatTag(), target + first);
  StoreFirst(largest, target + first, count);
}

void RaiseAll(MatrixView<const float> x, float* target) {
  constexpr int64_t lanes = kLanes;
  int64_t first = 0;
  for (; first + kColumns <= x.cols; first += kColumns) RaiseColumns(x, first, target);
  for (; first + lanes <= x.cols; first += lanes) RaiseLastColumns(x, first, kLanes, target);
  if (first < x.cols) RaiseLastColumns(x, first, static_cast<size_t>(x.cols - first), target);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace attendant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attendant {

HWY_EXPORT(RaiseAll);

void RaiseToColumnMax(MatrixView<const float> x, float* target) {
  HWY_DYNAMIC_DISPATCH(RaiseAll)(x, target);
}

}  // namespace attendant
#endif  // HWY_ONCE
