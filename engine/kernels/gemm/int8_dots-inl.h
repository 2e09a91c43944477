// The int8 products of the vector GEMM (block_gemm.h). Included once per instruction set, by
// Highway's foreach_target. Uses AVX2 and NEON intrinsics, because Highway 1.0.3 has no products of
// bytes.

#include <algorithm>
#include <cstring>

#include "engine/base/rounding.h"
#include "engine/kernels/gemm/block_gemm.h"
#include "engine/kernels/gemm/step_layout.h"
#include "engine/kernels/isa.h"

#if defined(ATTENDANT_ENGINE_KERNELS_GEMM_INT8_DOTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTENDANT_ENGINE_KERNELS_GEMM_INT8_DOTS_INL_H_
#undef ATTENDANT_ENGINE_KERNELS_GEMM_INT8_DOTS_INL_H_
#else
#define ATTENDANT_ENGINE_KERNELS_GEMM_INT8_DOTS_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace attendant {
namespace HWY_NAMESPACE {
namespace {

// A tile of x: up to kInt8TileRows rows of a stretch of the depth. Small enough to fit into the L1
// cache together with the same stretch of a stripe; large enough that preparing it costs little
// compared with its products with all stripes of a panel.
constexpr int64_t kInt8TileRows = 16;
constexpr int64_t kInt8TileDepth = 512;

// Each class of products below multiplies a step of the depth of kInt8VectorColumns columns with
// that of a row of a tile, and adds the products to the sums of the columns. The weights of a step
// and the sums are kParts vectors each. The sums of kRows rows and a stripe of kVectors times
// kInt8VectorColumns columns fit into the registers.

#if HWY_TARGET == HWY_NEON

class Int8Tile {
 public:
  // Copies the tile, with zeros up to a whole number of steps.
  Int8Tile(const char* x, int64_t x_row_bytes, int64_t rows, int64_t depth) {
    for (int64_t r = 0; r < rows; ++r) {
      std::memset(elements_[r] + depth, 0, RoundUp(depth, kInt8Step) - depth);
      std::memcpy(elements_[r], x + r * x_row_bytes, depth);
    }
  }

  int32_t Four(int64_t row, int64_t k) const {
    int32_t four;
    std::memcpy(&four, elements_[row] + k, sizeof(four));
    return four;
  }

 private:
  alignas(64) int8_t elements_[kInt8TileRows][kInt8TileDepth];
};

// For CPUs with dot products. In assembly for the same reason as RoundToHalves (simd-inl.h).
struct QuadDots {
  static constexpr int kRows = 4;
  static constexpr int kVectors = kQuadDotsVectors;
  static constexpr int kParts = 2;
  using Weights = int8x16_t;
  using Factors = int8x8_t;  // only the first four count
  using Sums = int32x4_t;
  static HWY_INLINE Weights Load(const char* from) {
    return vld1q_s8(reinterpret_cast<const int8_t*>(from));
  }
  static HWY_INLINE Factors Repeat(const Int8Tile& tile, int64_t row, int64_t k) {
    return vreinterpret_s8_s32(vset_lane_s32(tile.Four(row, k), vdup_n_s32(0), 0));
  }
  static HWY_INLINE Sums Start(const Int8Tile& /*tile*/, int64_t /*row*/) { return vdupq_n_s32(0); }
  static HWY_INLINE Sums Add(const Factors& x, Weights weights, Sums sums) {
    asm(".arch armv8.2-a+crypto+dotprod\n\tsdot %[sums].4s, %[weights].16b, %[x].4b[0]"
        : [sums] "+w"(sums)
        : [weights] "w"(weights), [x] "w"(x));
    return sums;
  }
  static HWY_INLINE void Store(const Sums (&sums)[kParts], int32_t* y) {
    vst1q_s32(y, sums[0]);
    vst1q_s32(y + 4, sums[1]);
  }
};

// Adds pairs of 16-bit products. Each column has two sums until it is stored.
struct PairDots {
  static constexpr int kRows = 2;
  static constexpr int kVectors = kPairDotsVectors;
  static constexpr int kParts = 4;
  using Weights = int8x8_t;
  using Factors = int8x8_t;
  using Sums = int32x4_t;
  static HWY_INLINE Weights Load(const char* from) {
    return vld1_s8(reinterpret_cast<const int8_t*>(from));
  }
  static HWY_INLINE Factors Repeat(const Int8Tile& tile, int64_t row, int64_t k) {
    return vreinterpret_s8_s32(vdup_n_s32(tile.Four(row, k)));
  }
  static HWY_INLINE Sums Start(const Int8Tile& /*tile*/, int64_t /*row*/) { return vdupq_n_s32(0); }
  static HWY_INLINE Sums Add(const Factors& x, Weights weights, Sums sums) {
    return vpadalq_s16(sums, vmull_s8(weights, x));
  }
  static HWY_INLINE void Store(const Sums (&sums)[kParts], int32_t* y) {
    vst1q_s32(y, vpaddq_s32(sums[0], sums[1]));
    vst1q_s32(y + 4, vpaddq_s32(sums[2], sums[3]));
  }
};

#else

// AVX2 multiplies unsigned by signed bytes. So a tile is split into magnitudes and masks; a mask is
// -1 for negative elements and 0 for others. Then x w = |x| (w ^ mask) for x >= 0, and because
// -w = ~w + 1, x w = |x| (w ^ mask) + |x| for x < 0. So the sums of a row start at the sum of the
// magnitudes of its negative elements.
class Int8Tile {
 public:
  Int8Tile(const char* x, int64_t x_row_bytes, int64_t rows, int64_t depth) {
    for (int64_t r = 0; r < rows; ++r) Split(x + r * x_row_bytes, depth, r);
  }

  const int8_t* magnitudes(int64_t row) const { return magnitudes_[row]; }
  const int8_t* masks(int64_t row) const { return masks_[row]; }
  int32_t negatives(int64_t row) const { return negatives_[row]; }

 private:
  static constexpr int64_t kBytes = 32;  // of a SIMD vector

  HWY_INLINE void Split(const char* x, int64_t depth, int64_t row) {
    __m256i sums = _mm256_setzero_si256();
    const auto split = [&](const char* from, int64_t k) HWY_ATTR {
      const __m256i zero = _mm256_setzero_si256();
      const __m256i elements = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
      const __m256i magnitudes = _mm256_abs_epi8(elements);
      const __m256i masks = _mm256_cmpgt_epi8(zero, elements);
      _mm256_store_si256(reinterpret_cast<__m256i*>(magnitudes_[row] + k), magnitudes);
      _mm256_store_si256(reinterpret_cast<__m256i*>(masks_[row] + k), masks);
      const __m256i negatives = _mm256_and_si256(magnitudes, masks);
      sums = _mm256_add_epi64(sums, _mm256_sad_epu8(negatives, zero));
    };
    int64_t k = 0;
    for (; k + kBytes <= depth; k += kBytes) split(x + k, k);
    if (k < depth) {
      char rest[kBytes] = {};
      std::memcpy(rest, x + k, depth - k);
      split(rest, k);
    }
    int64_t lanes[kBytes / sizeof(int64_t)];
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), sums);
    negatives_[row] = static_cast<int32_t>(lanes[0] + lanes[1] + lanes[2] + lanes[3]);
  }

  alignas(64) int8_t magnitudes_[kInt8TileRows][kInt8TileDepth];
  alignas(64) int8_t masks_[kInt8TileRows][kInt8TileDepth];
  int32_t negatives_[kInt8TileRows];
};

struct DotsOfAvx2 {
  static constexpr int kParts = 1;
  using Weights = __m256i;
  struct Factors {
    __m256i magnitudes;
    __m256i masks;
  };
  using Sums = __m256i;
  static HWY_INLINE Weights Load(const char* from) {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
  }
  static HWY_INLINE Factors Repeat(const Int8Tile& tile, int64_t row, int64_t k) {
    return {RepeatFour(tile.magnitudes(row) + k), RepeatFour(tile.masks(row) + k)};
  }
  static HWY_INLINE Sums Start(const Int8Tile& tile, int64_t row) {
    return _mm256_set1_epi32(tile.negatives(row));
  }
  static HWY_INLINE void Store(const Sums (&sums)[kParts], int32_t* y) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y), sums[0]);
  }

 private:
  static HWY_INLINE __m256i RepeatFour(const int8_t* from) {
    int32_t four;
    std::memcpy(&four, from, sizeof(four));
    return _mm256_set1_epi32(four);
  }
};

// Widens each sum of two products, at most 2 * 127 * 128 in magnitude, to 32 bits.
struct PairDots : DotsOfAvx2 {
  static constexpr int kRows = 2;
  static constexpr int kVectors = kPairDotsVectors;
  static HWY_INLINE Sums Add(const Factors& x, Weights weights, Sums sums) {
    const __m256i pairs = _mm256_maddubs_epi16(x.magnitudes, _mm256_xor_si256(weights, x.masks));
    return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
};

// For CPUs with AVX-VNNI. In assembly for the same reason as RoundToHalves (simd-inl.h).
struct QuadDots : DotsOfAvx2 {
  static constexpr int kRows = 4;
  static constexpr int kVectors = kQuadDotsVectors;
  static HWY_INLINE Sums Add(const Factors& x, Weights weights, Sums sums) {
    const __m256i weights_for_magnitudes = _mm256_xor_si256(weights, x.masks);
    asm("%{vex%} vpdpbusd %[weights], %[magnitudes], %[sums]"
        : [sums] "+x"(sums)
        : [magnitudes] "x"(x.magnitudes), [weights] "x"(weights_for_magnitudes));
    return sums;
  }
};

#endif

// A stretch of the depth of a stripe, and the destination of its sums.
struct Int8Stretch {
  const char* weights;
  int64_t depth;
  bool add_to_y;
  int32_t* y;
  int64_t y_stride;
  int64_t last_columns;  // of the last vector
  int64_t bytes_ahead;   // for each step of the depth, as in vector_gemm.cc
};

template <class Dots>
HWY_INLINE void StoreInt8Sums(const typename Dots::Sums (&sums)[Dots::kParts], bool add_to_y,
                              int32_t* y, int64_t columns) {
  if (!add_to_y && columns == kInt8VectorColumns) return Dots::Store(sums, y);
  int32_t lanes[kInt8VectorColumns];
  Dots::Store(sums, lanes);
  for (int64_t c = 0; c < columns; ++c) y[c] = lanes[c] + (add_to_y ? y[c] : 0);
}

template <class Dots, int kRows, int kVectors>
HWY_NOINLINE void MultiplyInt8Rows(const Int8Tile& tile, const Int8Stretch& stretch,
                                   const char* ahead, int64_t row) {
  constexpr int kParts = Dots::kParts, kAllParts = kVectors * kParts;
  constexpr int64_t kPartBytes = kInt8VectorBytes / kParts,
                    kStepBytes = kVectors * kInt8VectorBytes;
  const char* HWY_RESTRICT weights = stretch.weights;
  const int64_t depth = stretch.depth, bytes_ahead = stretch.bytes_ahead;
  typename Dots::Sums sums[kRows][kAllParts];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 12
    for (auto& sum : sums[r]) sum = Dots::Start(tile, row + r);
  }
  for (int64_t k = 0; k < depth; k += kInt8Step) {
    __builtin_prefetch(ahead);
    ahead += bytes_ahead;
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const typename Dots::Factors factors = Dots::Repeat(tile, row + r, k);
#pragma GCC unroll 12
      for (int part = 0; part < kAllParts; ++part) {
        sums[r][part] = Dots::Add(factors, Dots::Load(weights + part * kPartBytes), sums[r][part]);
      }
    }
    weights += kStepBytes;
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    int32_t* const y = stretch.y + (row + r) * stretch.y_stride;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      typename Dots::Sums of_vector[kParts];
#pragma GCC unroll 4
      for (int part = 0; part < kParts; ++part) of_vector[part] = sums[r][v * kParts + part];
      StoreInt8Sums<Dots>(of_vector, stretch.add_to_y, y + v * kInt8VectorColumns,
                          v + 1 == kVectors ? stretch.last_columns : kInt8VectorColumns);
    }
  }
}

template <class Dots, int kVectors>
HWY_INLINE void MultiplyInt8Stretch(const Int8Tile& tile, const Int8Stretch& stretch, int64_t rows,
                                    int64_t stripe_bytes) {
  const int64_t steps = CeilDivide(stretch.depth, kInt8Step);
  const char* ahead = stretch.weights + stripe_bytes;
  int64_t row = 0;
  for (; row + Dots::kRows <= rows; row += Dots::kRows) {
    MultiplyInt8Rows<Dots, Dots::kRows, kVectors>(tile, stretch, ahead, row);
    ahead += steps * stretch.bytes_ahead;
  }
  for (; row < rows; ++row) MultiplyInt8Rows<Dots, 1, kVectors>(tile, stretch, ahead, row);
}

// Computes the products of a tile, `rows` rows from `first_row` and `depth` elements from `k` on,
// and all columns.
template <class Dots>
HWY_INLINE void MultiplyInt8Tile(const BlockGemm& product, int64_t first_row, int64_t rows,
                                 int64_t k, int64_t depth) {
  const Int8Tile tile(product.x + first_row * product.x_row_bytes + k, product.x_row_bytes, rows,
                      depth);
  int32_t* const y = reinterpret_cast<int32_t*>(product.y) + first_row * product.y_stride;
  const int64_t column_bytes = RoundUp(product.in, kInt8Step);
  const int64_t row_groups = std::max(int64_t{1}, rows / Dots::kRows);
  constexpr int64_t kStripe = Dots::kVectors * kInt8VectorColumns;
  for (int64_t first = 0; first < product.width; first += kStripe) {
    const int64_t columns = std::min(kStripe, product.width - first);
    const int64_t vectors = CeilDivide(columns, kInt8VectorColumns);
    const int64_t padded = vectors * kInt8VectorColumns;
    const Int8Stretch stretch = {.weights = product.weight + first * column_bytes + k * padded,
                                 .depth = depth,
                                 .add_to_y = k > 0,
                                 .y = y + first,
                                 .y_stride = product.y_stride,
                                 .last_columns = columns - (padded - kInt8VectorColumns),
                                 .bytes_ahead = vectors * kInt8VectorBytes / row_groups};
    const int64_t stripe_bytes = column_bytes * padded;
    switch (vectors) {
      case 1:
        MultiplyInt8Stretch<Dots, 1>(tile, stretch, rows, stripe_bytes);
        break;
      case 2:
        MultiplyInt8Stretch<Dots, 2>(tile, stretch, rows, stripe_bytes);
        break;
      case 3:
        MultiplyInt8Stretch<Dots, std::min(Dots::kVectors, 3)>(tile, stretch, rows, stripe_bytes);
        break;
      default:
        MultiplyInt8Stretch<Dots, Dots::kVectors>(tile, stretch, rows, stripe_bytes);
        break;
    }
  }
}

template <class Dots>
HWY_INLINE void MultiplyInt8With(const BlockGemm& product) {
  for (int64_t k = 0; k == 0 || k < product.in; k += kInt8TileDepth) {
    const int64_t depth = std::min(kInt8TileDepth, product.in - k);
    for (int64_t row = 0; row < product.rows; row += kInt8TileRows) {
      MultiplyInt8Tile<Dots>(product, row, std::min(kInt8TileRows, product.rows - row), k, depth);
    }
  }
}

void MultiplyInt8ByDots(const BlockGemm& product) {
  if (UsesInt8Dots()) return MultiplyInt8With<QuadDots>(product);
  MultiplyInt8With<PairDots>(product);
}

const char* NameOfInt8Kernel() {
#if HWY_TARGET == HWY_NEON
  if (UsesInt8Matrices()) return "smmla";
  return UsesInt8Dots() ? "sdot" : "neon";
#else
  return UsesInt8Dots() ? "avx_vnni" : "avx2";
#endif
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace attendant
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
