#include "engine/kernels/activation.h"

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

// Returns x sigmoid(s), where s has the sign of x and |s| is given. Like GELU below it is computed
// as relu(x) minus a small bump of |x|, so that the result has little more than its own rounding
// error, however large x is. The bump is zero long before |x| reaches 100; without that limit
// infinity times zero would be NaN.
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

// Calls visit(function) with the function of one vector that computes `activation`.
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

void ActivateBlock(Activation activation, MatrixView<const float> x, MatrixView<float> y) {
  Visit(activation, [&](const auto& function) HWY_ATTR {
    const size_t cols = static_cast<size_t>(x.cols);
    for (int64_t r = 0; r < x.rows; ++r) {
      TransformRow(x.row(r), cols, y.row(r), function);
    }
  });
}

// `to_float` makes float32 of the elements of the sums.
template <class ToFloat, class Function>
HWY_INLINE void DequantizeRows(const Dequantization& from, MatrixView<const float> sums,
                               MatrixView<float> y, const ToFloat& to_float,
                               const Function& function) {
  const FloatTag d;
  const size_t cols = static_cast<size_t>(sums.cols);
  // Copied, because what is stored to y might otherwise change them for all the compiler knows.
  const float* const column_scales = from.column_scales;
  const float* const bias = from.bias;
  for (int64_t r = 0; r < sums.rows; ++r) {
    const Floats row_scale = hn::Set(d, from.row_scales[r]);
    const auto dequantize = [&](Floats sum, Floats column_scale, Floats offset) HWY_ATTR {
      return function(hn::MulAdd(hn::Mul(to_float(sum), row_scale), column_scale, offset));
    };
    const float* const source = sums.row(r);
    float* const target = y.row(r);
    size_t i = 0;
    for (; i + kLanes <= cols; i += kLanes) {
      hn::StoreU(dequantize(hn::LoadU(d, source + i), hn::LoadU(d, column_scales + i),
                            hn::LoadU(d, bias + i)),
                 d, target + i);
    }
    if (const size_t left = cols - i; left > 0) {
      StoreFirst(dequantize(LoadFirst(source + i, left), LoadFirst(column_scales + i, left),
                            LoadFirst(bias + i, left)),
                 target + i, left);
    }
  }
}

void DequantizeBlock(const Dequantization& from, Activation activation,
                     MatrixView<const float> sums, MatrixView<float> y) {
  Visit(activation, [&](const auto& function) HWY_ATTR {
    if (!from.integers) {
      return DequantizeRows(from, sums, y, [](Floats sum) HWY_ATTR { return sum; }, function);
    }
    const auto to_float = [](Floats sum) HWY_ATTR {
      return hn::ConvertTo(FloatTag(), hn::BitCast(hn::RebindToSigned<FloatTag>(), sum));
    };
    DequantizeRows(from, sums, y, to_float, function);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace attendant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attendant {

HWY_EXPORT(ActivateBlock);
HWY_EXPORT(DequantizeBlock);

void Activate(Activation activation, MatrixView<const float> x, MatrixView<float> y) {
  if (activation == Activation::kIdentity && x.data == y.data) return;
  HWY_DYNAMIC_DISPATCH(ActivateBlock)(activation, x, y);
}

void DequantizeAndActivate(const Dequantization& dequantization, Activation activation,
                           MatrixView<const float> sums, MatrixView<float> y) {
  HWY_DYNAMIC_DISPATCH(DequantizeBlock)(dequantization, activation, sums, y);
}

}  // namespace attendant
#endif  // HWY_ONCE
