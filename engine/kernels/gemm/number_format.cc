#include "engine/kernels/gemm/number_format.h"

#include <algorithm>
#include <limits>

// foreach_target.h comes before whatever it includes once per target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/gemm/number_format.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "engine/kernels/activation.h"
#include "engine/kernels/isa.h"
#include "engine/kernels/simd-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace attendant {
namespace HWY_NAMESPACE {
namespace {

constexpr size_t kRotatedBlock = 128;
constexpr size_t kMostVectors = 8;  // that are rotated in registers
// The factor for elements outside whole blocks: about as much as the rotation scales the others.
constexpr float kTailFactor = 8;

// Computes to[i] = function(from[i]) with elements of type T.
template <class T, class Function>
HWY_INLINE void ConvertRow(const float* from, size_t count, T* to, const Function& function) {
  const hn::Rebind<T, FloatTag> d;
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    hn::StoreU(function(hn::LoadU(FloatTag(), from + i)), d, to + i);
  }
  if (i == count) return;
  HWY_ALIGN T last[kLanes];
  hn::Store(function(LoadFirst(from + i, count - i)), d, last);
  std::memcpy(to + i, last, (count - i) * sizeof(T));
}

HWY_INLINE Bits RoundToBf16(Floats x) { return NarrowToBFloat16(hn::BitCast(BitsTag(), x)); }

HWY_INLINE Floats Widen(Bits bfloat16) {
  return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(bfloat16));
}

// Rounds to the first of two parts, which is at most the largest bfloat16.
HWY_INLINE Bits RoundToFinite(Floats x) {
  const BitsTag d;
  const Bits rounded = RoundToBf16(x);
  const auto is_infinite = hn::Eq(hn::And(rounded, hn::Set(d, 0x7FFF)), hn::Set(d, 0x7F80));
  return hn::IfThenElse(is_infinite, hn::Sub(rounded, hn::Set(d, 1)), rounded);
}

// Converts a row to bfloat16 with round(x), which returns bits.
template <class Function>
HWY_INLINE void RoundRowBy(const float* from, size_t count, bool emulate, void* to,
                           const Function& round) {
  if (emulate) {
    return ConvertRow(from, count, static_cast<float*>(to),
                      [&](Floats x) HWY_ATTR { return Widen(round(x)); });
  }
  const hn::RebindToSigned<FloatTag> signed_tag;
  ConvertRow(from, count, static_cast<uint16_t*>(to), [&](Floats x) HWY_ATTR {
    return hn::DemoteTo(hn::Rebind<uint16_t, FloatTag>(), hn::BitCast(signed_tag, round(x)));
  });
}

void RoundRow(const float* from, size_t count, bool emulate, void* to) {
  RoundRowBy(from, count, emulate, to, [](Floats x) HWY_ATTR { return RoundToBf16(x); });
}

void SplitRow(const float* from, size_t count, bool emulate, void* high, void* low) {
  RoundRowBy(from, count, emulate, high, [](Floats x) HWY_ATTR { return RoundToFinite(x); });
  RoundRowBy(from, count, emulate, low,
             [](Floats x) HWY_ATTR { return RoundToBf16(hn::Sub(x, Widen(RoundToFinite(x)))); });
}

HWY_INLINE Bits Magnitude(Floats x) {
  return hn::And(hn::BitCast(BitsTag(), x), hn::Set(BitsTag(), 0x7FFFFFFF));
}

// Rounds to int32. NearestInt would also handle numbers that are too large, which takes as long as
// the rest of the conversion.
HWY_INLINE Bits RoundToIntegers(Floats x) {
#if HWY_ARCH_X86
  Bits rounded;
  asm("vcvtps2dq %[x], %[rounded]" : [rounded] "=v"(rounded.raw) : [x] "v"(x.raw));
  return rounded;
#else
  return hn::BitCast(BitsTag(), hn::NearestInt(x));
#endif
}

// Computes x * inverse, rounded to integers. Its elements must be at most 127 in magnitude.
void ScaleRow(const float* from, size_t count, float inverse, bool emulate, void* to) {
  const Floats factor = hn::Set(FloatTag(), inverse);
  if (emulate) {
    return ConvertRow(from, count, static_cast<float*>(to),
                      [&](Floats x) HWY_ATTR { return hn::Round(hn::Mul(x, factor)); });
  }
  ConvertRow(from, count, static_cast<uint8_t*>(to), [&](Floats x) HWY_ATTR {
    return hn::TruncateTo(hn::Rebind<uint8_t, FloatTag>(), RoundToIntegers(hn::Mul(x, factor)));
  });
}

// Swaps elements i and i + stride, where stride is a power of two.
template <size_t stride>
HWY_INLINE Floats SwapAcross(Floats x) {
  if constexpr (stride == 1) return hn::Shuffle2301(x);
  if constexpr (stride == 2) return hn::Shuffle1032(x);
  HWY_ALIGN int32_t partners[kLanes];
  for (size_t lane = 0; lane < kLanes; ++lane) partners[lane] = static_cast<int32_t>(lane ^ stride);
  return hn::TableLookupLanes(x, hn::SetTableIndices(FloatTag(), partners));
}

// Replaces elements i and i + stride by their sum and their difference.
template <size_t stride>
HWY_INLINE Floats AddAcross(Floats x) {
  if constexpr (stride < kLanes) {
    HWY_ALIGN float signs[kLanes];
    for (size_t lane = 0; lane < kLanes; ++lane) signs[lane] = (lane & stride) != 0 ? -1.0f : 1.0f;
    // A product with 1 or -1 is exact, so this is a single addition.
    return hn::MulAdd(x, hn::Load(FloatTag(), signs), SwapAcross<stride>(x));
  }
  return x;
}

// Replaces vectors i and i + kStride by their sum and their difference, then halves the stride.
template <size_t kStride, size_t kVectors>
HWY_INLINE void AddBetween(Floats (&v)[kVectors]) {
  if constexpr (kStride > 0) {
#pragma GCC unroll 8
    for (size_t i = 0; i < kVectors; ++i) {
      if ((i & kStride) != 0) continue;
      const Floats a = v[i], b = v[i + kStride];
      v[i] = hn::Add(a, b);
      v[i + kStride] = hn::Sub(a, b);
    }
    AddBetween<kStride / 2>(v);
  }
}

// Computes the fast Walsh-Hadamard transform of a block of kElements elements, by additions in a
// fixed order, so that SIMD vectors of any length give the same bits. Updates `largest` with the
// magnitudes of the result. `from` may be `to`.
template <size_t kElements>
HWY_INLINE void RotateBlock(const float* from, float* to, Bits& largest) {
  constexpr size_t kVectors = kElements / kLanes;
  const FloatTag d;
  if constexpr (kVectors > kMostVectors) {
    constexpr size_t kHalf = kElements / 2;
    for (size_t i = 0; i < kHalf; i += kLanes) {
      const Floats a = hn::LoadU(d, from + i), b = hn::LoadU(d, from + kHalf + i);
      hn::StoreU(hn::Add(a, b), d, to + i);
      hn::StoreU(hn::Sub(a, b), d, to + kHalf + i);
    }
    RotateBlock<kHalf>(to, to, largest);
    RotateBlock<kHalf>(to + kHalf, to + kHalf, largest);
  } else {
    Floats v[kVectors];
#pragma GCC unroll 8
    for (size_t i = 0; i < kVectors; ++i) v[i] = hn::LoadU(d, from + i * kLanes);
    AddBetween<kVectors / 2>(v);
#pragma GCC unroll 8
    for (size_t i = 0; i < kVectors; ++i) {
      const Floats sums = AddAcross<1>(AddAcross<2>(AddAcross<4>(AddAcross<8>(v[i]))));
      largest = hn::Max(largest, Magnitude(sums));
      hn::StoreU(sums, d, to + i * kLanes);
    }
  }
}

// Rotates a row and returns the largest magnitude of the result; `from` may be `to`. Magnitudes are
// compared as bits, where infinity is above every number and NaN above infinity.
float RotateRow(const float* from, size_t count, float* to) {
  Bits largest = hn::Zero(BitsTag());
  size_t i = 0;
  for (; i + kRotatedBlock <= count; i += kRotatedBlock) {
    RotateBlock<kRotatedBlock>(from + i, to + i, largest);
  }
  const Floats factor = hn::Set(FloatTag(), kTailFactor);
  TransformRow(from + i, count - i, to + i, [&](Floats x) HWY_ATTR {
    const Floats scaled = hn::Mul(x, factor);
    largest = hn::Max(largest, Magnitude(scaled));
    return scaled;
  });
  return hn::GetLane(hn::BitCast(FloatTag(), hn::MaxOfLanes(BitsTag(), largest)));
}

float RotateAndQuantizeRow(const float* from, size_t count, bool emulate, float* scratch,
                           void* to) {
  const float largest = RotateRow(from, count, scratch);
  // Below this the factor would overflow. NaN compares false.
  const bool is_zero = largest < 0x1p-100f;
  const bool is_number = largest <= std::numeric_limits<float>::max();
  if (!is_zero && is_number) {
    ScaleRow(scratch, count, kLargestInt8 / largest, emulate, to);
    return largest / kLargestInt8;
  }
  std::memset(to, 0, count * (emulate ? sizeof(float) : sizeof(int8_t)));
  return is_zero ? 0.0f : std::numeric_limits<float>::quiet_NaN();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace attendant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attendant {

using HWY_NAMESPACE::kRotatedBlock;
using HWY_NAMESPACE::kTailFactor;
HWY_EXPORT(RoundRow);
HWY_EXPORT(SplitRow);
HWY_EXPORT(RotateAndQuantizeRow);

namespace {

float RotateAndQuantize(const float* source, size_t count, bool emulate, float* scratch, void* to) {
  return HWY_DYNAMIC_DISPATCH(RotateAndQuantizeRow)(source, count, emulate, scratch, to);
}

void RoundRowsNatively(MatrixView<const float> rows, const ConversionTarget& target) {
  const int64_t stride = target.row_stride / static_cast<int64_t>(sizeof(uint16_t));
  ActivateToBf16(Activation::kIdentity, rows, {static_cast<uint16_t*>(target.data), stride});
}

}  // namespace

bool RoundsElementwise(const ComputeMode& mode) {
  return mode.type == ComputeType::kBf16x3 || mode.type == ComputeType::kBf16;
}

bool RoundsNatively(const ComputeMode& mode) {
  static const bool has_units = HasBf16Units();
  return has_units && mode.type == ComputeType::kBf16 && !mode.emulate;
}

void ConvertInputRows(const ComputeMode& mode, MatrixView<const float> rows, float* scratch,
                      const ConversionTarget& target, float* scales) {
  if (RoundsNatively(mode)) return RoundRowsNatively(rows, target);
  const size_t count = static_cast<size_t>(rows.cols);
  char* to = static_cast<char*>(target.data);
  for (int64_t r = 0; r < rows.rows; ++r, to += target.row_stride) {
    const float* row = rows.row(r);
    if (mode.type == ComputeType::kInt8) {
      scales[r] = RotateAndQuantize(row, count, mode.emulate, scratch, to);
    } else if (mode.type == ComputeType::kBf16x3) {
      HWY_DYNAMIC_DISPATCH(SplitRow)(row, count, mode.emulate, to, to + target.part_stride);
    } else {
      HWY_DYNAMIC_DISPATCH(RoundRow)(row, count, mode.emulate, to);
    }
  }
}

float ConvertInput(const ComputeMode& mode, const float* source, int64_t count, float* scratch,
                   const ConversionTarget& target) {
  float scale = 1.0f;
  ConvertInputRows(mode, {source, 1, count, count}, scratch, target, &scale);
  return scale;
}

float ConvertWeight(const ComputeMode& mode, const float* source, int64_t count, float* scratch,
                    const ConversionTarget& target) {
  if (mode.type != ComputeType::kInt8) return ConvertInput(mode, source, count, scratch, target);
  // These factors are powers of two, so the products are exact.
  const int64_t rotated = count - count % static_cast<int64_t>(kRotatedBlock);
  const auto scale = [](float factor) { return [factor](float w) { return w * factor; }; };
  std::transform(source, source + rotated, scratch, scale(1.0f / kRotatedBlock));
  std::transform(source + rotated, source + count, scratch + rotated,
                 scale(1 / (kTailFactor * kTailFactor)));
  return RotateAndQuantize(scratch, static_cast<size_t>(count), mode.emulate, scratch, target.data);
}

}  // namespace attendant
#endif  // HWY_ONCE
