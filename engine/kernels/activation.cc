#include "engine/kernels/activation.h"

#include <algorithm>
#include <cstring>

#include "engine/kernels/isa.h"

// foreach_target.h comes before whatever it includes once per target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/activation.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "engine/kernels/simd-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace attendant {
namespace HWY_NAMESPACE {
namespace {

HWY_INLINE Floats Relu(Floats x) {
  const Floats zero = hn::Zero(FloatTag());
  return hn::IfThenZeroElse(hn::Lt(x, zero), x);  // unlike Max, keeps NaN
}

// Returns 1 / (1 + e^s) for s >= 0: the small side of the sigmoid, with full relative accuracy.
HWY_INLINE Floats SigmoidTail(Floats s) {
  const Floats one = hn::Set(FloatTag(), 1.0f);
  const Floats e = ExpOfNonPositive(hn::Neg(s));
  return hn::Div(e, hn::Add(one, e));
}

// Returns x sigmoid(s), where s has the sign of x and |s| is given. Like GELU below, it is computed
// as relu(x) minus a small function of |x|, so that the error is little more than rounding of the
// result, however large x is. That function is zero long before |x| reaches 100; without this
// limit, infinity times zero would be NaN.
HWY_INLINE Floats Gate(Floats x, Floats abs_s) {
  const Floats a = hn::Min(hn::Set(FloatTag(), 100.0f), hn::Abs(x));
  return hn::NegMulAdd(a, SigmoidTail(abs_s), Relu(x));
}

// Returns x Phi(x) = relu(x) - |x| Phi(-|x|). The eighth root of Phi(-a) is nearly a parabola: this
// minimax polynomial on [0, 6] has an absolute error of 3e-9 in a Phi(-a), which is below 1e-8
// beyond 6.
HWY_INLINE Floats Gelu(Floats x) {
  const FloatTag d;
  const Floats a = hn::Min(hn::Set(d, 6.0f), hn::Abs(x));
  auto p = hn::MulAdd(hn::Set(d, -2.95879971e-07f), a, hn::Set(d, 7.47952708e-06f));
  p = hn::MulAdd(p, a, hn::Set(d, -6.02574983e-05f));
  p = hn::MulAdd(p, a, hn::Set(d, 3.42946369e-05f));
  p = hn::MulAdd(p, a, hn::Set(d, 0.00150436303f));
  p = hn::MulAdd(p, a, hn::Set(d, -0.000671956281f));
  p = hn::MulAdd(p, a, hn::Set(d, -0.0319280773f));
  p = hn::MulAdd(p, a, hn::Set(d, -0.0914574116f));
  p = hn::MulAdd(p, a, hn::Set(d, 0.917003989f));
  p = hn::Mul(p, p);
  p = hn::Mul(p, p);
  p = hn::Mul(p, p);
  return hn::NegMulAdd(a, p, Relu(x));
}

// Returns 0.5 x (1 + tanh(u)) = x sigmoid(2 u).
HWY_INLINE Floats GeluTanh(Floats x) {
  const FloatTag d;
  const Floats a = hn::Abs(x);
  const Floats cubic = hn::MulAdd(hn::Mul(hn::Set(d, 0.044715f), hn::Mul(a, a)), a, a);
  return Gate(x, hn::Mul(hn::Set(d, 1.59576912f), cubic));  // 2 sqrt(2 / pi)
}

HWY_INLINE Floats QuickGelu(Floats x) {
  return Gate(x, hn::Mul(hn::Set(FloatTag(), 1.702f), hn::Abs(x)));
}

HWY_INLINE Floats Silu(Floats x) { return Gate(x, hn::Abs(x)); }

HWY_INLINE Floats Sigmoid(Floats x) {
  const FloatTag d;
  const Floats tail = SigmoidTail(hn::Abs(x));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(hn::Set(d, 1.0f), tail));
}

// Calls visit(function) with a function that computes `activation` for one SIMD vector.
template <class Visitor>
void Visit(Activation activation, const Visitor& visit) {
  switch (activation) {
    case Activation::kIdentity:
      return visit([](Floats x) HWY_ATTR { return x; });
    case Activation::kGelu:
      return visit([](Floats x) HWY_ATTR { return Gelu(x); });
    case Activation::kGeluTanh:
      return visit([](Floats x) HWY_ATTR { return GeluTanh(x); });
    case Activation::kQuickGelu:
      return visit([](Floats x) HWY_ATTR { return QuickGelu(x); });
    case Activation::kRelu:
      return visit([](Floats x) HWY_ATTR { return Relu(x); });
    case Activation::kSilu:
      return visit([](Floats x) HWY_ATTR { return Silu(x); });
    case Activation::kTanh:
      return visit([](Floats x) HWY_ATTR { return Tanh(x); });
    case Activation::kSigmoid:
      return visit([](Floats x) HWY_ATTR { return Sigmoid(x); });
  }
}

// Writes rows of float32. See MakeRow for `value`.
struct FloatRows {
  static constexpr int64_t kRowsAhead = 4;

  MatrixView<float> y;

  template <class Value>
  HWY_INLINE void Write(int64_t r, size_t cols, const Value& value) const {
    float* const to = y.row(r);
    // An integer, because the row may be beyond the end of y. A prefetch cannot fault.
    const uintptr_t ahead = reinterpret_cast<uintptr_t>(to) +
                            static_cast<uintptr_t>(kRowsAhead * y.stride) * sizeof(float);
    MakeRow(cols, to, [&](const auto& load, size_t i) HWY_ATTR {
      // A block's rows are short and far apart, which the CPU does not foresee.
      __builtin_prefetch(reinterpret_cast<const void*>(ahead + i * sizeof(float)), 1);
      return value(load, i);
    });
  }
};

#if HWY_TARGET <= ATTENDANT_BF16_TARGET
// Likewise writes rows of bfloat16, on CPUs with instructions that round to it.
struct RoundedRows {
  Bf16Rows y;

  template <class Value>
  HWY_INLINE void Write(int64_t r, size_t cols, const Value& value) const {
    uint16_t* const to = y.data + r * y.stride;
    size_t i = 0;
    for (; i + 2 * kLanes <= cols; i += 2 * kLanes) {
      const Floats rounded = RoundToHalves(value(LoadAll(), i), value(LoadAll(), i + kLanes));
      hn::StoreU(rounded, FloatTag(), reinterpret_cast<float*>(to + i));
    }
    for (; i < cols; i += kLanes) {
      const size_t left = std::min(kLanes, cols - i);
      const auto load = [left](const float* from) HWY_ATTR { return LoadFirst(from, left); };
      HWY_ALIGN uint16_t last[2 * kLanes];
      const Floats rounded = RoundToHalves(value(load, i), hn::Zero(FloatTag()));
      hn::Store(rounded, FloatTag(), reinterpret_cast<float*>(last));
      std::memcpy(to + i, last, left * sizeof(uint16_t));
    }
  }
};
#endif

// `to_float` converts the elements of the sums to float32.
template <class ToFloat, class Function, class Rows>
HWY_INLINE void DequantizeRowsBy(const Dequantization& from, MatrixView<const float> sums,
                                 const Rows& y, const ToFloat& to_float, const Function& function) {
  // Copied, because the compiler must otherwise assume that stores to y change them.
  const float* const column_scales = from.column_scales;
  const float* const bias = from.bias;
  for (int64_t r = 0; r < sums.rows; ++r) {
    const Floats row_scale = hn::Set(FloatTag(), from.row_scales[r]);
    const float* const source = sums.row(r);
    y.Write(r, static_cast<size_t>(sums.cols), [&](const auto& load, size_t i) HWY_ATTR {
      const Floats scaled = hn::Mul(to_float(load(source + i)), row_scale);
      return function(hn::MulAdd(scaled, load(column_scales + i), load(bias + i)));
    });
  }
}

template <class Rows>
HWY_INLINE void ActivateRows(Activation activation, MatrixView<const float> x, const Rows& y,
                             const Dequantization& from) {
  Visit(activation, [&](const auto& function) HWY_ATTR {
    if (from.row_scales == nullptr) {
      for (int64_t r = 0; r < x.rows; ++r) {
        const float* const source = x.row(r);
        y.Write(r, static_cast<size_t>(x.cols),
                [&](const auto& load, size_t i) HWY_ATTR { return function(load(source + i)); });
      }
    } else if (from.integers) {
      const auto to_float = [](Floats sum) HWY_ATTR {
        return hn::ConvertTo(FloatTag(), hn::BitCast(hn::RebindToSigned<FloatTag>(), sum));
      };
      DequantizeRowsBy(from, x, y, to_float, function);
    } else {
      DequantizeRowsBy(
          from, x, y, [](Floats sum) HWY_ATTR { return sum; }, function);
    }
  });
}

void ActivateBlock(Activation activation, MatrixView<const float> x, MatrixView<float> y,
                   const Dequantization& from) {
  ActivateRows(activation, x, FloatRows{y}, from);
}

#if HWY_TARGET <= ATTENDANT_BF16_TARGET
void ActivateAndRoundBlock(Activation activation, MatrixView<const float> x, const Bf16Rows& y,
                           const Dequantization& from) {
  ActivateRows(activation, x, RoundedRows{y}, from);
}
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace attendant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attendant {

HWY_EXPORT(ActivateBlock);

void Activate(Activation activation, MatrixView<const float> x, MatrixView<float> y,
              const Dequantization& from) {
  const bool is_done = activation == Activation::kIdentity && from.row_scales == nullptr;
  if (is_done && x.data == y.data) return;
  HWY_DYNAMIC_DISPATCH(ActivateBlock)(activation, x, y, from);
}

void ActivateToBf16([[maybe_unused]] Activation activation,
                    [[maybe_unused]] MatrixView<const float> x, [[maybe_unused]] const Bf16Rows& y,
                    [[maybe_unused]] const Dequantization& from) {
  RequireBf16Units();
#if (HWY_TARGETS & ATTENDANT_BF16_TARGET) != 0
  ATTENDANT_BF16_NAMESPACE::ActivateAndRoundBlock(activation, x, y, from);
#endif
}

}  // namespace attendant
#endif  // HWY_ONCE
