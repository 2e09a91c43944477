#include "engine/kernels/convert.h"

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

// Converts `count` elements, at any alignment.
template <class Function>
HWY_INLINE void WidenAll(const uint16_t* from, size_t count, float* to, const Function& function) {
  const auto widen = [&](const uint16_t* halves) HWY_ATTR {
    const Bits bits = function(hn::PromoteTo(BitsTag(), hn::LoadU(HalfWordTag(), halves)));
    return hn::BitCast(FloatTag(), bits);
  };
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) hn::StoreU(widen(from + i), FloatTag(), to + i);
  if (i == count) return;
  uint16_t last[kLanes] = {};
  std::memcpy(last, from + i, (count - i) * sizeof(uint16_t));
  StoreFirst(widen(last), to + i, count - i);
}

template <class Function>
HWY_INLINE void NarrowAll(const float* from, size_t count, uint16_t* to, const Function& function) {
  const auto narrow = [&](Floats floats, uint16_t* halves) HWY_ATTR {
    const Bits bits = function(hn::BitCast(BitsTag(), floats));
    hn::StoreU(hn::DemoteTo(HalfWordTag(), hn::BitCast(hn::RebindToSigned<FloatTag>(), bits)),
               HalfWordTag(), halves);
  };
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) narrow(hn::LoadU(FloatTag(), from + i), to + i);
  if (i == count) return;
  uint16_t last[kLanes];
  narrow(LoadFirst(from + i, count - i), last);
  std::memcpy(to + i, last, (count - i) * sizeof(uint16_t));
}

void WidenRow(bool is_bfloat16, const uint16_t* from, size_t count, float* to) {
  if (is_bfloat16) {
    WidenAll(from, count, to, [](Bits half) HWY_ATTR { return WidenBFloat16(half); });
  } else {
    WidenAll(from, count, to, [](Bits half) HWY_ATTR { return WidenFloat16(half); });
  }
}

void NarrowRow(bool to_bfloat16, const float* from, size_t count, uint16_t* to) {
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

HWY_EXPORT(WidenRow);
HWY_EXPORT(NarrowRow);
HWY_EXPORT(AllFiniteIn);

void DoubleToFloat(const char* source, int64_t count, float* target) {
  for (int64_t i = 0; i < count; ++i) {
    double value;
    std::memcpy(&value, source + i * 8, 8);
    target[i] = static_cast<float>(value);
  }
}

}  // namespace

void ToFloat(DataType from, const void* source, int64_t count, float* target) {
  switch (from) {
    case DataType::kFloat32:
      if (count > 0) std::memcpy(target, source, count * sizeof(float));
      return;
    case DataType::kFloat64:
      return DoubleToFloat(static_cast<const char*>(source), count, target);
    default:
      HWY_DYNAMIC_DISPATCH(WidenRow)
      (from == DataType::kBFloat16, static_cast<const uint16_t*>(source),
       static_cast<size_t>(count), target);
  }
}

void FromFloat(const float* source, int64_t count, DataType to, void* target) {
  if (to == DataType::kFloat32) {
    if (count > 0) std::memcpy(target, source, count * sizeof(float));
    return;
  }
  HWY_DYNAMIC_DISPATCH(NarrowRow)
  (to == DataType::kBFloat16, source, static_cast<size_t>(count), static_cast<uint16_t*>(target));
}

bool AllFinite(const float* values, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(AllFiniteIn)(values, static_cast<size_t>(count));
}

}  // namespace attendant
#endif  // HWY_ONCE
