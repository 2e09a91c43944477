#include "engine/kernels/attention/linear_attention.h"

#include <algorithm>

#include "engine/base/rounding.h"

// foreach_target.h comes before whatever it includes once per target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/attention/linear_attention.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "engine/kernels/simd-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace attendant {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kVector = static_cast<int64_t>(kLanes);

constexpr int64_t PaddedWidth(int64_t width) { return RoundUp(width, kVector); }

// state = state + k v^T.
void Remember(const float* key, int64_t depth, const float* value, int64_t width, float* state) {
  const FloatTag d;
  const int64_t stride = PaddedWidth(width);
  for (int64_t col = 0; col < width; col += kVector) {
    const Floats part = LoadUpTo(value + col, width - col);
    for (int64_t i = 0; i < depth; ++i) {
      float* at = state + i * stride + col;
      hn::Store(hn::MulAdd(hn::Set(d, key[i]), part, hn::Load(d, at)), d, at);
    }
  }
}

// y = scale q^T state.
void Recall(const float* query, int64_t depth, const float* state, int64_t width, float scale,
            float* y) {
  const FloatTag d;
  const int64_t stride = PaddedWidth(width);
  for (int64_t col = 0; col < width; col += kVector) {
    Floats sum = hn::Zero(d);
    for (int64_t i = 0; i < depth; ++i) {
      sum = hn::MulAdd(hn::Set(d, query[i]), hn::Load(d, state + i * stride + col), sum);
    }
    StoreUpTo(hn::Mul(sum, hn::Set(d, scale)), y + col, width - col);
  }
}

void AttendHead(const AttentionBlock& head, const float* before, float* state) {
  const int64_t depth = head.keys.cols, width = head.values.cols;
  const int64_t size = depth * PaddedWidth(width);
  if (before != nullptr) {
    std::copy_n(before, size, state);
  } else {
    std::fill_n(state, size, 0.0f);
  }
  int64_t keys_read = 0;
  for (int64_t q = 0; q < head.queries.rows; ++q) {
    const int64_t end = head.causal ? head.first_query + q + 1 : head.keys.rows;
    for (; keys_read < end; ++keys_read) {
      Remember(head.keys.row(keys_read), depth, head.values.row(keys_read), width, state);
    }
    Recall(head.queries.row(q), depth, state, width, head.scale, head.context.row(q));
  }
}

// A vector of columns of the rows stays in the L1 cache for all rows of the result.
void Mix(MatrixView<const float> factors, absl::Span<const int32_t> positions,
         MatrixView<const float> rows, MatrixView<float> mixed) {
  const FloatTag d;
  for (int64_t col = 0; col < rows.cols; col += kVector) {
    const int64_t left = rows.cols - col;
    for (int64_t i = 0; i < mixed.rows; ++i) {
      Floats sum = hn::Zero(d);
      for (int64_t t = 0; t < rows.rows; ++t) {
        const int64_t position = positions.empty() ? t : positions[t] - positions[0];
        const Floats factor = hn::Set(d, factors.row(i)[position]);
        sum = hn::MulAdd(factor, LoadUpTo(rows.row(t) + col, left), sum);
      }
      StoreUpTo(sum, mixed.row(i) + col, left);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace attendant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attendant {

HWY_EXPORT(AttendHead);
HWY_EXPORT(Mix);

void AttendLinearHead(const AttentionBlock& block, const float* before, float* state) {
  HWY_DYNAMIC_DISPATCH(AttendHead)(block, before, state);
}

void MixRows(MatrixView<const float> factors, absl::Span<const int32_t> positions,
             MatrixView<const float> rows, MatrixView<float> mixed) {
  HWY_DYNAMIC_DISPATCH(Mix)(factors, positions, rows, mixed);
}

}  // namespace attendant
#endif  // HWY_ONCE
