#include "engine/kernels/columns.h"

#include <cstdint>

// foreach_target.h comes before whatever it includes once per target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/columns.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "engine/kernels/simd-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace attendant {
namespace HWY_NAMESPACE {
namespace {

using DoubleTag = hn::CappedTag<double, 8>;
using HalfTag = hn::Rebind<float, DoubleTag>;
constexpr int64_t kDoubles = static_cast<int64_t>(hn::MaxLanes(DoubleTag()));
constexpr int kVectors = 8;  // vectors of maxima or sums that are in registers at a time
constexpr int64_t kFloatColumns = kVectors * static_cast<int64_t>(kLanes);
constexpr int64_t kDoubleColumns = kVectors * kDoubles;

// Computes the sums of kDoubleColumns columns from `first` on. `weight` returns the weight of a
// row.
template <class Weight>
HWY_INLINE void SumColumns(MatrixView<const float> x, int64_t first, double divisor, float* target,
                           const Weight& weight) {
  const DoubleTag d;
  hn::Vec<DoubleTag> sums[kVectors];
  for (auto& sum : sums) sum = hn::Zero(d);
  for (int64_t r = 0; r < x.rows; ++r) {
    const float* row = x.row(r) + first;
    const auto factor = hn::Set(d, weight(r));
    for (int v = 0; v < kVectors; ++v) {
      const auto values = hn::PromoteTo(d, hn::LoadU(HalfTag(), row + v * kDoubles));
      sums[v] = hn::Add(sums[v], hn::Mul(values, factor));
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    const auto quotient = hn::Div(sums[v], hn::Set(d, divisor));
    hn::StoreU(hn::DemoteTo(HalfTag(), quotient), HalfTag(), target + first + v * kDoubles);
  }
}

template <class Weight>
void SumAllColumns(MatrixView<const float> x, double divisor, float* target, const Weight& weight) {
  int64_t first = 0;
  for (; first + kDoubleColumns <= x.cols; first += kDoubleColumns) {
    SumColumns(x, first, divisor, target, weight);
  }
  for (; first < x.cols; ++first) {
    double sum = 0;
    for (int64_t r = 0; r < x.rows; ++r) sum += weight(r) * x.row(r)[first];
    target[first] = static_cast<float>(sum / divisor);
  }
}

// `weights` is null for weights of 1.
void SumAll(MatrixView<const float> x, const double* weights, double divisor, float* target) {
  if (weights == nullptr) {
    return SumAllColumns(x, divisor, target, [](int64_t) { return 1.0; });
  }
  SumAllColumns(x, divisor, target, [weights](int64_t r) { return weights[r]; });
}

// Hardware maxima return the second argument if either is NaN, which loses a NaN in the first.
HWY_INLINE Floats Larger(Floats value, Floats so_far) {
  return hn::IfThenElse(hn::Or(hn::Gt(value, so_far), hn::IsNaN(value)), value, so_far);
}

// Computes the columns [first, first + kFloatColumns).
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

// Computes at most kLanes of the `count` columns from `first` on.
HWY_INLINE void RaiseLastColumns(MatrixView<const float> x, int64_t first, int64_t count,
                                 float* target) {
  Floats largest = LoadUpTo(target + first, count);
  for (int64_t r = 0; r < x.rows; ++r) {
    largest = Larger(LoadUpTo(x.row(r) + first, count), largest);
  }
  StoreUpTo(largest, target + first, count);
}

void RaiseAll(MatrixView<const float> x, float* target) {
  constexpr int64_t lanes = kLanes;
  int64_t first = 0;
  for (; first + kFloatColumns <= x.cols; first += kFloatColumns) RaiseColumns(x, first, target);
  for (; first < x.cols; first += lanes) RaiseLastColumns(x, first, x.cols - first, target);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace attendant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attendant {

HWY_EXPORT(SumAll);
HWY_EXPORT(RaiseAll);

void ColumnSums(MatrixView<const float> x, double divisor, float* target) {
  HWY_DYNAMIC_DISPATCH(SumAll)(x, nullptr, divisor, target);
}

void WeightedColumnSums(MatrixView<const float> x, absl::Span<const double> weights, double divisor,
                        float* target) {
  HWY_DYNAMIC_DISPATCH(SumAll)(x, weights.data(), divisor, target);
}

void RaiseToColumnMax(MatrixView<const float> x, float* target) {
  HWY_DYNAMIC_DISPATCH(RaiseAll)(x, target);
}

}  // namespace attendant
#endif  // HWY_ONCE
