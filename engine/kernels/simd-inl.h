// SIMD helpers that the kernels share. Included once per instruction set, by Highway's
// foreach_target.

#if defined(ATTENDANT_ENGINE_KERNELS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTENDANT_ENGINE_KERNELS_SIMD_INL_H_
#undef ATTENDANT_ENGINE_KERNELS_SIMD_INL_H_
#else
#define ATTENDANT_ENGINE_KERNELS_SIMD_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

// The only target with bf16 units, on CPUs with HasBf16Units (isa.h), and its namespace.
#ifndef ATTENDANT_BF16_TARGET
#if HWY_ARCH_ARM
#define ATTENDANT_BF16_TARGET HWY_NEON
#define ATTENDANT_BF16_NAMESPACE N_NEON
#else
#define ATTENDANT_BF16_TARGET HWY_AVX3
#define ATTENDANT_BF16_NAMESPACE N_AVX3
#endif
#endif

HWY_BEFORE_NAMESPACE();
namespace attendant {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// At most 16 floats, so that block sizes have an upper bound that is known outside this namespace.
using FloatTag = hn::CappedTag<float, 16>;
using Floats = hn::Vec<FloatTag>;
using BitsTag = hn::RebindToUnsigned<FloatTag>;
using Bits = hn::Vec<BitsTag>;
inline constexpr size_t kLanes = hn::MaxLanes(FloatTag());

// Calls function(i) for each i in [0, kCount). Unrolled, so that arrays of vectors that i indexes
// stay in registers.
template <int kCount, class Function>
HWY_INLINE void ForEach(const Function& function) {
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) function(i);
}

// Calls function(row, vector) for each vector of a tile of rows. Unrolled likewise.
template <int kRows, int kVectors, class Function>
HWY_INLINE void ForTile(const Function& function) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) function(r, v);
  }
}

// Makes the compiler update the sum in place. With AVX2, the sums of a tile and the operands fill
// all registers, and g++ 12 would otherwise hold some sums in memory.
HWY_INLINE void KeepInRegister([[maybe_unused]] Floats& sum) {
#if HWY_TARGET == HWY_AVX2
  asm volatile("" : "+x"(sum.raw));
#endif
}

// Loads the first `count` < kLanes floats, and zeros into the other lanes. Does not read beyond
// them. The end of a row uses the same SIMD arithmetic as its middle, so that the bits of an
// element do not depend on its position.
template <class D = FloatTag>
HWY_INLINE hn::Vec<D> LoadFirst(const float* from, size_t count, D d = D()) {
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN float lanes[kLanes] = {};
  std::memcpy(lanes, from, count * sizeof(float));
  return hn::Load(d, lanes);
#else
  return hn::MaskedLoad(hn::FirstN(d, count), d, from);
#endif
}

// Stores the first `count` < kLanes floats. Does not write beyond them.
HWY_INLINE void StoreFirst(Floats values, float* to, size_t count) {
  const FloatTag d;
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN float lanes[kLanes];
  hn::Store(values, d, lanes);
  std::memcpy(to, lanes, count * sizeof(float));
#else
  hn::BlendedStore(values, hn::FirstN(d, count), d, to);
#endif
}

// Loads at most `count` floats, and zeros into the remaining lanes. `count` may be 0 or negative.
HWY_INLINE Floats LoadUpTo(const float* from, int64_t count) {
  if (count >= static_cast<int64_t>(kLanes)) return hn::LoadU(FloatTag(), from);
  return count > 0 ? LoadFirst(from, static_cast<size_t>(count)) : hn::Zero(FloatTag());
}

// Stores at most `count` > 0 floats.
HWY_INLINE void StoreUpTo(Floats values, float* to, int64_t count) {
  if (count >= static_cast<int64_t>(kLanes)) return hn::StoreU(values, FloatTag(), to);
  StoreFirst(values, to, static_cast<size_t>(count));
}

// A class, because not every optimization level inlines calls through a function pointer.
struct LoadAll {
  HWY_INLINE Floats operator()(const float* from) const { return hn::LoadU(FloatTag(), from); }
};

// Writes `count` floats. The vector that begins at element i is value(load, i), where load(p) loads
// the vector at p, or only its first elements at the end of the row.
template <class Value>
HWY_INLINE void MakeRow(size_t count, float* to, const Value& value) {
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) hn::StoreU(value(LoadAll(), i), FloatTag(), to + i);
  const size_t left = count - i;
  if (left == 0) return;
  const auto load = [left](const float* from) HWY_ATTR { return LoadFirst(from, left); };
  StoreFirst(value(load, i), to + i, left);
}

// Computes to[i] = function(from[i]). `to` may be `from`.
template <class Function>
HWY_INLINE void TransformRow(const float* from, size_t count, float* to, const Function& function) {
  MakeRow(count, to, [&](const auto& load, size_t i) HWY_ATTR { return function(load(from + i)); });
}

// Converts float32 to bfloat16, both as bits. Rounds to nearest even by adding just under half of
// the last kept bit. This would overflow NaN to infinity, so NaN keeps its upper bits and becomes
// quiet.
HWY_INLINE Bits NarrowToBFloat16(Bits bits) {
  const BitsTag d;
  const Bits last = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
  const Bits rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(last, hn::Set(d, 0x7FFF))));
  const Bits quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(d, 0x40));
  const auto is_nan = hn::Gt(hn::And(bits, hn::Set(d, 0x7FFFFFFF)), hn::Set(d, 0x7F800000));
  return hn::IfThenElse(is_nan, quiet, rounded);
}

// Rounds `first` and `second` to bfloat16 and concatenates them, on CPUs with bf16 units. The bits
// are those of NarrowToBFloat16, except that denormals may become zeros, as products treat them
// anyway. In assembly, because Highway 1.0.3 does not support these units, and intrinsics cannot be
// inlined into functions that are compiled for its targets. Functions that use it begin with
// RequireBf16Units (isa.h).
#if HWY_TARGET == HWY_NEON
HWY_INLINE Floats RoundToHalves(Floats first, Floats second) {
  float32x4_t halves;
  asm(".arch armv8.2-a+crypto+bf16\n\t"
      "bfcvtn %[halves].4h, %[first].4s\n\tbfcvtn2 %[halves].8h, %[second].4s"
      : [halves] "=&w"(halves)
      : [first] "w"(first.raw), [second] "w"(second.raw));
  return Floats(halves);
}
#elif HWY_TARGET <= HWY_AVX3
HWY_INLINE Floats RoundToHalves(Floats first, Floats second) {
  Floats halves;
  asm("vcvtne2ps2bf16 %[first], %[second], %[halves]"
      : [halves] "=v"(halves.raw)
      : [first] "v"(first.raw), [second] "v"(second.raw));
  return halves;
}
#else
// Only declared, for templates that other targets do not instantiate with it. Using it is a linker
// error.
Floats RoundToHalves(Floats first, Floats second);
#endif

// Returns the larger of both, or NaN if x is NaN.
HWY_INLINE Floats MaxOrNan(Floats limit, Floats x) {
#if HWY_TARGET == HWY_NEON
  return Floats(vmaxq_f32(limit.raw, x.raw));  // Max ignores NaN
#else
  return hn::Max(limit, x);  // in this order, x86 keeps NaN
#endif
}

// Computes x = 2^x for x <= 0, with a relative error below 1.7e-7 and none at 0. The result is 0
// below -126.5, where it would be denormal. Propagates NaN. Interleaves the steps of several
// vectors, because a single vector would mostly wait for the latency of its previous step.
template <int kVectors>
HWY_INLINE void Exp2OfNonPositive(Floats (&x)[kVectors]) {
  const FloatTag d;
  const auto lowest = hn::Set(d, -127.0f);
  Floats power[kVectors], p[kVectors];
  const auto each = [](const auto& function) HWY_ATTR { ForEach<kVectors>(function); };
  each([&](int i) HWY_ATTR { x[i] = MaxOrNan(lowest, x[i]); });
#if HWY_TARGET <= HWY_AVX3
  each([&](int i) HWY_ATTR { power[i] = hn::Round(x[i]); });
  each([&](int i) HWY_ATTR { x[i] = hn::Sub(x[i], power[i]); });
#else
  const hn::RebindToUnsigned<FloatTag> bits;
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits, which is cheaper than
  // converting to an integer and back. The constant includes the exponent bias, 127, so that the
  // lowest x, -127, gives the bits of zero.
  const auto magic = hn::Set(d, 12582912.0f + 127.0f);
  each([&](int i) HWY_ATTR { power[i] = hn::Add(x[i], magic); });
  each([&](int i) HWY_ATTR { x[i] = hn::Sub(x[i], hn::Sub(power[i], magic)); });
  each([&](int i)
           HWY_ATTR { power[i] = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(bits, power[i]))); });
#endif
  // A minimax polynomial on |x| <= 1 / 2.
  each([&](int i) HWY_ATTR { p[i] = hn::Set(d, 0.00132647273f); });
  for (const float coefficient :
       {0.00967151299f, 0.0555073358f, 0.240222424f, 0.693147004f, 1.0f}) {
    each([&](int i) HWY_ATTR { p[i] = hn::MulAdd(p[i], x[i], hn::Set(d, coefficient)); });
  }
#if HWY_TARGET <= HWY_AVX3
  each([&](int i) HWY_ATTR { x[i] = Floats{_mm512_scalef_ps(p[i].raw, power[i].raw)}; });
#else
  each([&](int i) HWY_ATTR { x[i] = hn::Mul(p[i], power[i]); });
#endif
}

HWY_INLINE Floats Exp2OfNonPositive(Floats x) {
  Floats one[] = {x};
  Exp2OfNonPositive<1>(one);
  return one[0];
}

// Returns e^x for x <= 0, with a relative error below 1.5e-7. The result is 0 below -87.3, where it
// would be denormal. Propagates NaN. It is not computed as 2^(x log2 e), because rounding that
// product causes a relative error of up to |x| 2^-24. Softmax tolerates this error and includes the
// factor log2 e in the scale of its scores. Here the tails of activations stay accurate, at the
// same cost as the product.
HWY_INLINE Floats ExpOfNonPositive(Floats x) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> bits;
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits, which is cheaper than
  // converting to an integer and back.
  const auto magic = hn::Set(d, 12582912.0f);
  const auto shifted = hn::MulAdd(x, hn::Set(d, 1.44269504f), magic);
  const auto power = hn::Sub(shifted, magic);
  // ln 2 is split into two parts. The first has so few bits that its product with `power` is exact.
  auto r = hn::NegMulAdd(power, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(power, hn::Set(d, -2.12194440e-4f), r);
  // A minimax polynomial of (e^r - 1 - r) / r^2 on |r| <= ln 2 / 2.
  auto p = hn::MulAdd(hn::Set(d, 0.00138145883f), r, hn::Set(d, 0.00836872775f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.041668389f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.166665211f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.49999994f));
  p = hn::Add(hn::MulAdd(p, hn::Mul(r, r), r), hn::Set(d, 1.0f));
  const auto exponent = hn::ShiftLeft<23>(hn::Add(hn::BitCast(bits, shifted), hn::Set(bits, 127)));
  const auto result = hn::Mul(p, hn::BitCast(d, exponent));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.3f)), result);
}

HWY_INLINE Floats Tanh(Floats x) {
  const FloatTag d;
  const Floats one = hn::Set(d, 1.0f);
  const Floats e = ExpOfNonPositive(hn::Mul(hn::Set(d, -2.0f), hn::Abs(x)));
  return hn::CopySign(hn::Div(hn::Sub(one, e), hn::Add(one, e)), x);
}

}  // namespace HWY_NAMESPACE
}  // namespace attendant
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
