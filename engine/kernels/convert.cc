#include "engine/kernels/convert.h"

#include <algorithm>
#include <cstring>

// foreach_target.h comes before whatever it includes once per target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/convert.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "engine/kernels/simd-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace attendant {
namespace HWY_NAMESPACE {
namespace {

using HalfWordTag = hn::Rebind<uint16_t, FloatTag>;

// These conversions use only integers, so that the result depends neither on F16C nor on the
// thread's denormal mode.

HWY_INLINE Bits WidenBFloat16(Bits half) { return hn::ShiftLeft<16>(half); }

// The bits of a normal number are only shifted; a denormal m * 2^-24 is the integer m, converted
// and scaled.
HWY_INLINE Bits WidenFloat16(Bits half) {
  const BitsTag d;
  const FloatTag df;
  const hn::RebindToSigned<FloatTag> di;
  const Bits sign = hn::ShiftLeft<16>(hn::And(half, hn::Set(d, 0x8000)));
  const Bits magnitude = hn::And(half, hn::Set(d, 0x7FFF));
  const Bits moved = hn::ShiftLeft<13>(magnitude);
  const Bits normal = hn::Add(moved, hn::Set(d, (127 - 15) << 23));
  const Bits special = hn::Or(moved, hn::Set(d, 0x7F800000));
  const auto scaled = hn::Mul(hn::ConvertTo(df, hn::BitCast(di, magnitude)), hn::Set(df, 0x1p-24f));
  Bits result =
      hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x0400)), hn::BitCast(d, scaled), normal);
  result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x7BFF)), special, result);
  return hn::Or(result, sign);
}

// A denormal result is the number of steps of 2^-24. Adding 0.5, whose last bit is worth 2^-24,
// makes the addition do the rounding.
HWY_INLINE Bits NarrowToFloat16(Bits bits) {
  const BitsTag d;
  const FloatTag df;
  const Bits sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 0x8000));
  const Bits magnitude = hn::And(bits, hn::Set(d, 0x7FFFFFFF));
  const Bits last = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(d, 1));
  const Bits rebased = hn::Sub(magnitude, hn::Set(d, (127 - 15) << 23));
  const Bits normal = hn::ShiftRight<13>(hn::Add(rebased, hn::Add(last, hn::Set(d, 0x0FFF))));
  const auto steps = hn::Add(hn::BitCast(df, magnitude), hn::Set(df, 0.5f));
  const Bits denormal = hn::Sub(hn::BitCast(d, steps), hn::BitCast(d, hn::Set(df, 0.5f)));
  Bits result = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x38800000)), denormal, normal);
  result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x477FEFFF)), hn::Set(d, 0x7C00), result);
  const Bits nan =
      hn::Or(hn::And(hn::ShiftRight<13>(magnitude), hn::Set(d, 0x3FF)), hn::Set(d, 0x7E00));
  result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x7F800000)), nan, result);
  return hn::Or(result, sign);
}

// Converts `count` elements. Both arrays hold `count` rounded up to whole vectors, and are aligned.
template <class Function>
HWY_INLINE void WidenAll(const uint16_t* from, size_t count, float* to, const Function& function) {
  for (size_t i = 0; i < count; i += kLanes) {
    const Bits half = hn::PromoteTo(BitsTag(), hn::Load(HalfWordTag(), from + i));
    hn::Store(hn::BitCast(FloatTag(), function(half)), FloatTag(), to + i);
  }
}

template <class Function>
HWY_INLINE void NarrowAll(const float* from, size_t count, uint16_t* to, const Function& function) {
  const hn::RebindToSigned<FloatTag> di;
  for (size_t i = 0; i < count; i += kLanes) {
    const Bits half = function(hn::BitCast(BitsTag(), hn::Load(FloatTag(), from + i)));
    hn::Store(hn::DemoteTo(HalfWordTag(), hn::BitCast(di, half)), HalfWordTag(), to + i);
  }
}

void WidenChunk(bool is_bfloat16, const uint16_t* from, size_t count, float* to) {
  if (is_bfloat16) {
    WidenAll(from, count, to, [](Bits half) HWY_ATTR { return WidenBFloat16(half); });
  } else {
    WidenAll(from, count, to, [](Bits half) HWY_ATTR { return WidenFloat16(half); });
  }
}

void NarrowChunk(bool to_bfloat16, const float* from, size_t count, uint16_t* to) {
  if (to_bfloat16) {
    NarrowAll(from, count, to, [](Bits bits) HWY_ATTR { return NarrowToBFloat16(bits); });
  } else {
    NarrowAll(from, count, to, [](Bits bits) HWY_ATTR { return NarrowToFloat16(bits); });
  }
}

bool AllFiniteIn(const float* values, size_t count) {
  const FloatTag d;
  const BitsTag bits_tag;
  // Only the exponents of infinity and NaN have all bits set, so the largest exponent decides.
  const Bits exponent = hn::Set(bits_tag, 0x7F800000);
  Bits largest = hn::Zero(bits_tag);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    largest = hn::Max(largest, hn::And(hn::BitCast(bits_tag, hn::LoadU(d, values + i)), exponent));
  }
  if (i < count) {
    largest = hn::Max(largest,
                      hn::And(hn::BitCast(bits_tag, LoadFirst(values + i, count - i)), exponent));
  }
  return hn::AllTrue(bits_tag, hn::Lt(largest, exponent));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace attendant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attendant {
namespace {

HWY_EXPORT(WidenChunk);
HWY_EXPORT(NarrowChunk);
HWY_EXPORT(AllFiniteIn);

// The number of elements that are copied through an aligned buffer at a time, because neither side
// needs to be aligned.
constexpr int64_t kChunk = 1024;

// Calls function(begin, count) for [0, count) in chunks.
template <class Function>
void ForChunks(int64_t count, const Function& function) {
  for (int64_t begin = 0; begin < count; begin += kChunk)
    function(begin, std::min(kChunk, count - begin));
}

void HalvesToFloat(DataType from, const char* source, int64_t count, char* target) {
  alignas(64) uint16_t halves[kChunk] = {};
  alignas(64) float floats[kChunk];
  ForChunks(count, [&](int64_t begin, int64_t size) {
    std::memcpy(halves, source + begin * 2, size * 2);
    HWY_DYNAMIC_DISPATCH(WidenChunk)
    (from == DataType::kBFloat16, halves, static_cast<size_t>(size), floats);
    std::memcpy(target + begin * 4, floats, size * 4);
  });
}

void FloatToHalves(const char* source, int64_t count, DataType to, char* target) {
  alignas(64) float floats[kChunk] = {};
  alignas(64) uint16_t halves[kChunk];
  ForChunks(count, [&](int64_t begin, int64_t size) {
    std::memcpy(floats, source + begin * 4, size * 4);
    HWY_DYNAMIC_DISPATCH(NarrowChunk)
    (to == DataType::kBFloat16, floats, static_cast<size_t>(size), halves);
    std::memcpy(target + begin * 2, halves, size * 2);
  });
}

void DoubleToFloat(const char* source, int64_t count, float* target) {
  for (int64_t i = 0; i < count; ++i) {
    double value;
    std::memcpy(&value, source + i * 8, 8);
    target[i] = static_cast<float>(value);
  }
}

}  // namespace

void ToFloat(DataType from, const void* source, int64_t count, float* target) {
  const char* bytes = static_cast<const char*>(source);
  switch (from) {
    case DataType::kFloat32:
      if (count > 0) std::memcpy(target, source, count * sizeof(float));
      return;
    case DataType::kFloat64:
      return DoubleToFloat(bytes, count, target);
    default:
      return HalvesToFloat(from, bytes, count, reinterpret_cast<char*>(target));
  }
}

void FromFloat(const float* source, int64_t count, DataType to, void* target) {
  if (to == DataType::kFloat32) {
    if (count > 0) std::memcpy(target, source, count * sizeof(float));
    return;
  }
  FloatToHalves(reinterpret_cast<const char*>(source), count, to, static_cast<char*>(target));
}

bool AllFinite(const float* values, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(AllFiniteIn)(values, static_cast<size_t>(count));
}

}  // namespace attendant
#endif  // HWY_ONCE
