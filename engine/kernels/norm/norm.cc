#include "engine/kernels/norm/norm.h"

#include <cassert>
#include <cmath>

#include "engine/kernels/row_tiles.h"

// foreach_target.h comes before whatever it includes once per target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/norm/norm.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "engine/kernels/simd-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace attendant {
namespace HWY_NAMESPACE {
namespace {

// Sums are float64, which is accurate for any row but requires a conversion.
using DoubleTag = hn::CappedTag<double, 8>;
using Doubles = hn::Vec<DoubleTag>;
using NarrowTag = hn::Rebind<float, DoubleTag>;
inline constexpr size_t kWideLanes = hn::MaxLanes(DoubleTag());

HWY_INLINE Doubles Widen(const float* from) {
  return hn::PromoteTo(DoubleTag(), hn::LoadU(NarrowTag(), from));
}

// Returns the sum of function(value) over the row. Two chains of additions hide the latency.
template <class Function>
HWY_INLINE double SumOfRow(const float* row, size_t count, const Function& function) {
  const DoubleTag d;
  Doubles even = hn::Zero(d), odd = hn::Zero(d);
  size_t i = 0;
  for (; i + 2 * kWideLanes <= count; i += 2 * kWideLanes) {
    even = hn::Add(even, function(Widen(row + i)));
    odd = hn::Add(odd, function(Widen(row + i + kWideLanes)));
  }
  for (; i < count; i += kWideLanes) {
    const size_t left = HWY_MIN(count - i, kWideLanes);
    const Doubles values = hn::PromoteTo(d, LoadFirst<NarrowTag>(row + i, left));
    even = hn::Add(even, hn::IfThenElseZero(hn::FirstN(d, left), function(values)));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
}

void AddRow(const float* x, const float* residual, size_t count, float* y) {
  MakeRow(count, y, [=](const auto& load, size_t i) HWY_ATTR {
    return hn::Add(load(x + i), load(residual + i));
  });
}

void MultiplyRow(const float* x, const float* factor, size_t count, float* y) {
  MakeRow(count, y, [=](const auto& load, size_t i) HWY_ATTR {
    return hn::Mul(load(x + i), load(factor + i));
  });
}

// The mean as two floats, so that subtracting it from values far from zero loses no precision.
struct SplitMean {
  explicit SplitMean(double mean)
      : high(static_cast<float>(mean)), low(static_cast<float>(mean - static_cast<double>(high))) {}
  float high;
  float low;
};

HWY_INLINE Floats Center(Floats values, SplitMean mean) {
  const FloatTag d;
  return hn::Sub(hn::Sub(values, hn::Set(d, mean.high)), hn::Set(d, mean.low));
}

// Computes y = gamma * row + beta.
void ScaleRow(const float* row, const LayerNormWeights& weights, size_t count, float* y) {
  MultiplyRow(row, weights.gamma.data(), count, y);
  if (!weights.beta.empty()) AddRow(y, weights.beta.data(), count, y);
}

// Computes y = norm(row); y may be `row`. An RMS norm is a layer norm with a mean of zero.
void NormalizeRow(const float* row, const LayerNormWeights& weights, size_t count, float* y) {
  if (weights.kind == NormKind::kAffine) return ScaleRow(row, weights, count, y);
  const FloatTag d;
  const double size = static_cast<double>(count);
  const double exact_mean =
      weights.kind == NormKind::kRms
          ? 0.0
          : SumOfRow(row, count, [](Doubles value) HWY_ATTR { return value; }) / size;
  const Doubles center = hn::Set(DoubleTag(), exact_mean);
  const double variance = SumOfRow(row, count,
                                   [center](Doubles value) HWY_ATTR {
                                     const Doubles centered = hn::Sub(value, center);
                                     return hn::Mul(centered, centered);
                                   }) /
                          size;
  const SplitMean mean(exact_mean);
  const auto scale = hn::Set(d, static_cast<float>(1.0 / std::sqrt(variance + weights.epsilon)));
  const float* gamma = weights.gamma.data();
  const float* beta = weights.beta.empty() ? nullptr : weights.beta.data();
  MakeRow(count, y, [=](const auto& load, size_t i) HWY_ATTR {
    const Floats normal = hn::Mul(Center(load(row + i), mean), scale);
    const Floats offset = beta != nullptr ? load(beta + i) : hn::Zero(d);
    return hn::MulAdd(normal, load(gamma + i), offset);
  });
}

void AddAndNormalizeRow(const float* x, const float* residual, const LayerNormWeights& weights,
                        size_t count, float* y) {
  AddRow(x, residual, count, y);
  NormalizeRow(y, weights, count, y);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace attendant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attendant {
namespace {

HWY_EXPORT(AddRow);
HWY_EXPORT(MultiplyRow);
HWY_EXPORT(NormalizeRow);
HWY_EXPORT(AddAndNormalizeRow);

// Calls make(r, columns) to compute each of `rows` rows of y, then writes the row to the packed
// GEMM input of y.
template <class Make>
void MakeRows(const ThreadTeam& team, int64_t rows, const PreparedRows& y, const Make& make) {
  const size_t columns = static_cast<size_t>(y.rows.cols);
  ForRows(team, rows, [&](int worker, int64_t r) {
    make(r, columns);
    y.packed.WriteRows(worker, r, y.rows.Rows(r, 1));
  });
}

void CheckWeights([[maybe_unused]] const LayerNormWeights& weights,
                  [[maybe_unused]] int64_t width) {
  assert(static_cast<int64_t>(weights.gamma.size()) == width);
  assert(weights.beta.empty() || static_cast<int64_t>(weights.beta.size()) == width);
}

}  // namespace

void LayerNorm(const ThreadTeam& team, MatrixView<const float> x, const LayerNormWeights& weights,
               const PreparedRows& y) {
  CheckWeights(weights, x.cols);
  MakeRows(team, x.rows, y, [&](int64_t r, size_t columns) {
    HWY_DYNAMIC_DISPATCH(NormalizeRow)(x.row(r), weights, columns, y.rows.row(r));
  });
}

void NormalizeHeads(MatrixView<float> heads, const LayerNormWeights& weights) {
  const size_t width = weights.gamma.size();
  for (int64_t r = 0; r < heads.rows; ++r) {
    for (float* head = heads.row(r); head < heads.row(r) + heads.cols; head += width) {
      HWY_DYNAMIC_DISPATCH(NormalizeRow)(head, weights, width, head);
    }
  }
}

void AddLayerNorm(const ThreadTeam& team, MatrixView<const float> x,
                  MatrixView<const float> residual, const LayerNormWeights& weights,
                  const PreparedRows& y) {
  CheckWeights(weights, x.cols);
  MakeRows(team, x.rows, y, [&](int64_t r, size_t columns) {
    HWY_DYNAMIC_DISPATCH(AddAndNormalizeRow)
    (x.row(r), residual.row(r), weights, columns, y.rows.row(r));
  });
}

void AddNormalized(const ThreadTeam& team, MatrixView<const float> x, MatrixView<float> branch,
                   const LayerNormWeights& weights, MatrixView<float> y) {
  CheckWeights(weights, x.cols);
  MakeRows(team, x.rows, y, [&](int64_t r, size_t columns) {
    HWY_DYNAMIC_DISPATCH(NormalizeRow)(branch.row(r), weights, columns, branch.row(r));
    HWY_DYNAMIC_DISPATCH(AddRow)(x.row(r), branch.row(r), columns, y.row(r));
  });
}

void Multiply(const ThreadTeam& team, MatrixView<const float> x, MatrixView<const float> factor,
              const PreparedRows& y) {
  MakeRows(team, x.rows, y, [&](int64_t r, size_t columns) {
    HWY_DYNAMIC_DISPATCH(MultiplyRow)(x.row(r), factor.row(r), columns, y.rows.row(r));
  });
}

void Add(const ThreadTeam& team, MatrixView<const float> x, MatrixView<const float> residual,
         MatrixView<float> y) {
  MakeRows(team, x.rows, y, [&](int64_t r, size_t columns) {
    HWY_DYNAMIC_DISPATCH(AddRow)(x.row(r), residual.row(r), columns, y.row(r));
  });
}

}  // namespace attendant
#endif  // HWY_ONCE
