// Small matrix products for attention. Included once per instruction set.

#if defined(ATTENDANT_ENGINE_KERNELS_MICRO_KERNEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTENDANT_ENGINE_KERNELS_MICRO_KERNEL_INL_H_
#undef ATTENDANT_ENGINE_KERNELS_MICRO_KERNEL_INL_H_
#else
#define ATTENDANT_ENGINE_KERNELS_MICRO_KERNEL_INL_H_
#endif

#include <cstdint>
#include <type_traits>

#include "engine/base/rounding.h"
#include "engine/kernels/attention/attention_block.h"
#include "engine/kernels/simd-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace attendant {
namespace HWY_NAMESPACE {

// The number of columns of a right matrix that the micro-kernel computes at a time.
inline constexpr int64_t kPanel = 2 * static_cast<int64_t>(kLanes);

HWY_INLINE int64_t PaddedToPanel(int64_t cols) { return RoundUp(cols, kPanel); }

// The number of rows of a left matrix that the micro-kernel computes at a time. This needs 12
// accumulators, which fit into 16 registers.
inline constexpr int64_t kMicroRows = 6;

// The number of elements that are adjacent in depth and stored in 32 bits.
template <AttentionOperands kOperands>
inline constexpr int64_t kDepthOf =
    kOperands == AttentionOperands::kPairs || kOperands == AttentionOperands::kTiles ? 2 : 1;

// Returns the number of 32-bit elements for this depth. The last element, or the last tile, is
// padded with zeros.
template <AttentionOperands kOperands>
constexpr int64_t Elements(int64_t depth) {
  const int64_t elements = CeilDivide(depth, kDepthOf<kOperands>);
  return kOperands == AttentionOperands::kTiles ? RoundUp(elements, 16) : elements;
}

// A left matrix whose element (r, k) is at data[r * row_stride + k * depth_stride].
struct LeftOperand {
  const float* data;
  int64_t row_stride;
  int64_t depth_stride;
};

// Some SIMD vectors of each row of a right matrix. Row k starts at data + k * stride.
struct RightOperand {
  const float* data;
  int64_t stride;
};

template <int kRows, int kVectors>
using Tile = Floats[kRows][kVectors];

template <int kRows, int kVectors>
HWY_INLINE void ZeroTile(Tile<kRows, kVectors>& sums) {
  ForTile<kRows, kVectors>([&](int r, int v) HWY_ATTR { sums[r][v] = hn::Zero(FloatTag()); });
}

// AddProductsOfPairs is in assembly for the same reason as RoundToHalves (simd-inl.h).
#if HWY_TARGET == HWY_NEON
// Returns sum + ((low a) (low b) + (high a) (high b)), where each addition rounds to odd, with
// denormals as zeros. Only the first element of a counts.
HWY_INLINE Floats AddProductsOfPairs(float32x2_t a, Floats b, Floats sum) {
  asm(".arch armv8.2-a+crypto+bf16\n\tbfdot %[sum].4s, %[b].8h, %[a].2h[0]"
      : [sum] "+w"(sum.raw)
      : [a] "w"(a), [b] "w"(b.raw));
  return sum;
}

// Interleaves the bfloat16 elements in the lower halves of `low` and `high`.
HWY_INLINE Floats InterleaveLowerHalves(Floats low, Floats high) {
  return Floats(vreinterpretq_f32_u16(
      vzip1q_u16(vreinterpretq_u16_f32(low.raw), vreinterpretq_u16_f32(high.raw))));
}

// Likewise for the upper halves.
HWY_INLINE Floats InterleaveUpperHalves(Floats low, Floats high) {
  return Floats(vreinterpretq_f32_u16(
      vzip2q_u16(vreinterpretq_u16_f32(low.raw), vreinterpretq_u16_f32(high.raw))));
}

// Rounds both to bfloat16 and stores `low` in the low halves of the elements.
HWY_INLINE Floats RoundToPairs(Floats low, Floats high) {
  const Floats halves = RoundToHalves(low, high);
  return InterleaveLowerHalves(halves, Floats(vextq_f32(halves.raw, halves.raw, 2)));
}
#elif HWY_TARGET <= HWY_AVX3
// Returns sum + (high a) (high b) + (low a) (low b), added in this order, with denormals as zeros.
HWY_INLINE Floats AddProductsOfPairs(Floats a, Floats b, Floats sum) {
  asm("vdpbf16ps %[b], %[a], %[sum]" : [sum] "+v"(sum.raw) : [a] "v"(a.raw), [b] "v"(b.raw));
  return sum;
}

// Rounds both to bfloat16 and stores `low` in the low halves of the elements.
HWY_INLINE Floats RoundToPairs(Floats low, Floats high) {
  HWY_ALIGN static constexpr uint16_t kInterleaved[] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                        21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                        11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const __m512i halves = _mm512_castps_si512(RoundToHalves(low, high).raw);
  const __m512i order = _mm512_load_si512(kInterleaved);
  return Floats{_mm512_castsi512_ps(_mm512_permutexvar_epi16(order, halves))};
}

// Interleaves the bfloat16 elements in the lower halves of `low` and `high`.
HWY_INLINE Floats InterleaveLowerHalves(Floats low, Floats high) {
  HWY_ALIGN static constexpr uint16_t kOrder[] = {0,  32, 1,  33, 2,  34, 3,  35, 4,  36, 5,
                                                  37, 6,  38, 7,  39, 8,  40, 9,  41, 10, 42,
                                                  11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
  const __m512i order = _mm512_load_si512(kOrder);
  return Floats{_mm512_castsi512_ps(_mm512_permutex2var_epi16(_mm512_castps_si512(low.raw), order,
                                                              _mm512_castps_si512(high.raw)))};
}

// Likewise for the upper halves.
HWY_INLINE Floats InterleaveUpperHalves(Floats low, Floats high) {
  HWY_ALIGN static constexpr uint16_t kOrder[] = {16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21,
                                                  53, 22, 54, 23, 55, 24, 56, 25, 57, 26, 58,
                                                  27, 59, 28, 60, 29, 61, 30, 62, 31, 63};
  const __m512i order = _mm512_load_si512(kOrder);
  return Floats{_mm512_castsi512_ps(_mm512_permutex2var_epi16(_mm512_castps_si512(low.raw), order,
                                                              _mm512_castps_si512(high.raw)))};
}
#else
// Declared but not defined, like RoundToHalves.
Floats AddProductsOfPairs(Floats a, Floats b, Floats sum);
Floats RoundToPairs(Floats low, Floats high);
Floats InterleaveLowerHalves(Floats low, Floats high);
Floats InterleaveUpperHalves(Floats low, Floats high);
#endif

// Returns the element of a left matrix as MultiplyAdd takes it.
template <AttentionOperands kOperands>
HWY_INLINE auto Factor(float element) {
#if HWY_TARGET == HWY_NEON
  if constexpr (kOperands == AttentionOperands::kPairs) {
    return vset_lane_f32(element, vdup_n_f32(0), 0);
  } else
#endif
  {
    return hn::Set(FloatTag(), element);
  }
}

template <AttentionOperands kOperands, class Left>
HWY_INLINE Floats MultiplyAdd(Left a, Floats b, Floats sum) {
  if constexpr (kOperands == AttentionOperands::kPairs) {
    return AddProductsOfPairs(a, b, sum);
  } else {
    return hn::MulAdd(a, b, sum);
  }
}

// Computes sums += a[kRows, depth] b[depth, kVectors vectors], with `depth` in 32-bit elements.
// Adds in the order of depth, so the bits of a sum do not depend on the shape of the tile.
template <AttentionOperands kOperands, int kRows, int kVectors>
HWY_INLINE void MultiplyTile(LeftOperand a, RightOperand b, int64_t depth,
                             Tile<kRows, kVectors>& sums) {
  const FloatTag d;
  for (int64_t k = 0; k < depth; ++k, a.data += a.depth_stride, b.data += b.stride) {
    Floats right[kVectors];
    ForEach<kVectors>([&](int v) HWY_ATTR { right[v] = hn::LoadU(d, b.data + v * kLanes); });
    ForEach<kRows>([&](int r) HWY_ATTR {
      const auto left = Factor<kOperands>(a.data[r * a.row_stride]);
      ForEach<kVectors>(
          [&](int v) HWY_ATTR { sums[r][v] = MultiplyAdd<kOperands>(left, right[v], sums[r][v]); });
    });
  }
}

// Calls function(std::integral_constant<int, count>, begin) for a count of 1 to kMost.
template <int kMost, class Function>
HWY_INLINE void CallWithCount(int64_t count, int64_t begin, const Function& function) {
  if constexpr (kMost > 1) {
    if (count < kMost) return CallWithCount<kMost - 1>(count, begin, function);
  }
  function(std::integral_constant<int, kMost>(), begin);
}

// Calls function(std::integral_constant<int, count>, begin) for tiles that cover the rows [0,
// rows). There are as few tiles as possible, of similar sizes, because small tiles leave the
// arithmetic units idle.
template <class Function>
HWY_INLINE void ForRowTiles(int64_t rows, const Function& function) {
  const int64_t tiles = CeilDivide(rows, kMicroRows);
  const int64_t fewer = rows / tiles;
  const int64_t larger_tiles = rows % tiles;
  int64_t begin = 0;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const int64_t count = tile < larger_tiles ? fewer + 1 : fewer;
    CallWithCount<kMicroRows>(count, begin, function);
    begin += count;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace attendant
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
