// The int8 products of the vector GEMM (block_gemm.h). Included once per instruction set, by
// Highway's foreach_target. Uses AVX2 and NEON intrinsics, because Highway 1.0.3 has no products of
// bytes.

#include "engine/kernels/gemm/block_gemm.h"

#ifndef ATTENDANT_ENGINE_KERNELS_GEMM_INT8_DOTS_LAYOUT_
#define ATTENDANT_ENGINE_KERNELS_GEMM_INT8_DOTS_LAYOUT_

#include <algorithm>
#include <cstring>

#include "engine/base/rounding.h"
#include "engine/kernels/isa.h"
#include "hwy/base.h"

namespace attendant {
namespace {

// The SIMD vectors in a stripe of a packed weight, of every type. On arm64, g++ 12 does not keep
// the sums of a third one in registers.
constexpr int kStripeVectors = HWY_ARCH_ARM_A64 ? 2 : 3;

// A packed weight that is split into stripes of up to `stripe_columns` columns, padded with zeros
// to whole vectors of `vector_columns`. A step of a stripe has `step_bytes` bytes of the depth of
// the first column, then as many of the next column, and so on. The steps follow each other.
struct StepLayout {
  int64_t step_bytes;
  int64_t vector_columns;
  int64_t stripe_columns;
};

constexpr int64_t kInt8Step = 4;
constexpr int64_t kInt8VectorColumns = 8;
constexpr int64_t kInt8VectorBytes = kInt8Step * kInt8VectorColumns;
constexpr int64_t kInt8Columns = kStripeVectors * kInt8VectorColumns;
constexpr StepLayout kInt8Layout = {kInt8Step, kInt8VectorColumns, kInt8Columns};
// For matrix instructions, see vector_gemm.cc.
constexpr StepLayout kMatrixLayout = {8, 4, 4 * kStripeVectors};

inline bool UsesInt8Matrices() {
  static const bool has_matrices = HasInt8Matrices();
  return has_matrices;
}

// Return the bytes of a packed weight with `depth` bytes in a row, and pack it.
inline int64_t BytesInSteps(const StepLayout& layout, int64_t depth, int64_t width) {
  return RoundUp(depth, layout.step_bytes) * RoundUp(width, layout.vector_columns);
}

inline void PackInSteps(const StepLayout& layout, const WeightBlock& rows, int64_t depth,
                        char* packed) {
  std::memset(packed, 0, BytesInSteps(layout, depth, rows.width));
  for (int64_t first = 0; first < rows.width; first += layout.stripe_columns) {
    const int64_t columns = std::min(layout.stripe_columns, rows.width - first);
    const int64_t line_bytes = RoundUp(columns, layout.vector_columns) * layout.step_bytes;
    for (int64_t k = 0; k < depth; k += layout.step_bytes, packed += line_bytes) {
      for (int64_t c = 0; c < columns; ++c) {
        std::memcpy(packed + c * layout.step_bytes, rows.data + (first + c) * rows.row_bytes + k,
                    std::min(layout.step_bytes, depth - k));
      }
    }
  }
}

}  // namespace
}  // namespace attendant

#endif  // ATTENDANT_ENGINE_KERNELS_GEMM_INT8_DOTS_LAYOUT_

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

// Each class below multiplies four elements of the depth of kInt8VectorColumns columns with those
// of a row of x, and adds the products to the sums of the columns. Weights and sums are kParts
// vectors each. The sums of kRows rows fit into the registers.

#if HWY_TARGET == HWY_NEON

// For CPUs with dot products. In assembly for the same reason as RoundToHalves (simd-inl.h).
struct QuadDots {
  static constexpr int kRows = 4;
  static constexpr int kParts = 2;
  using Weights = int8x16_t;
  using Factors = int8x8_t;  // only the first four count
  using Sums = int32x4_t;
  static HWY_INLINE Weights Load(const char* from) {
    return vld1q_s8(reinterpret_cast<const int8_t*>(from));
  }
  static HWY_INLINE Factors Repeat(int32_t four) {
    return vreinterpret_s8_s32(vset_lane_s32(four, vdup_n_s32(0), 0));
  }
  static HWY_INLINE Sums Zero() { return vdupq_n_s32(0); }
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
  static constexpr int kParts = 4;
  using Weights = int8x8_t;
  using Factors = int8x8_t;
  using Sums = int32x4_t;
  static HWY_INLINE Weights Load(const char* from) {
    return vld1_s8(reinterpret_cast<const int8_t*>(from));
  }
  static HWY_INLINE Factors Repeat(int32_t four) { return vreinterpret_s8_s32(vdup_n_s32(four)); }
  static HWY_INLINE Sums Zero() { return vdupq_n_s32(0); }
  static HWY_INLINE Sums Add(const Factors& x, Weights weights, Sums sums) {
    return vpadalq_s16(sums, vmull_s8(weights, x));
  }
  static HWY_INLINE void Store(const Sums (&sums)[kParts], int32_t* y) {
    vst1q_s32(y, vpaddq_s32(sums[0], sums[1]));
    vst1q_s32(y + 4, vpaddq_s32(sums[2], sums[3]));
  }
};

#else

// AVX2 multiplies unsigned by signed bytes, so signed bytes are multiplied as the magnitude of x by
// the weight with the sign of x.
struct DotsOfAvx2 {
  static constexpr int kParts = 1;
  using Weights = __m256i;
  struct Factors {
    __m256i signs;
    __m256i magnitudes;
  };
  using Sums = __m256i;
  static HWY_INLINE Weights Load(const char* from) {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
  }
  static HWY_INLINE Factors Repeat(int32_t four) {
    const __m256i factors = _mm256_set1_epi32(four);
    return {factors, _mm256_abs_epi8(factors)};
  }
  static HWY_INLINE Sums Zero() { return _mm256_setzero_si256(); }
  static HWY_INLINE void Store(const Sums (&sums)[kParts], int32_t* y) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y), sums[0]);
  }
};

// The sum of a pair of products is at most 2 * 127 * 127 = 32258, so it does not saturate 16 bits.
// Widening to 16 bits, which would not need the signs, was measured to be slower.
struct PairDots : DotsOfAvx2 {
  static constexpr int kRows = 2;
  static HWY_INLINE Sums Add(const Factors& x, Weights weights, Sums sums) {
    const __m256i pairs = _mm256_maddubs_epi16(x.magnitudes, _mm256_sign_epi8(weights, x.signs));
    return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
};

// For CPUs with AVX-VNNI. In assembly for the same reason as RoundToHalves (simd-inl.h).
struct QuadDots : DotsOfAvx2 {
  static constexpr int kRows = 4;
  static HWY_INLINE Sums Add(const Factors& x, Weights weights, Sums sums) {
    asm("%{vex%} vpdpbusd %[weights], %[magnitudes], %[sums]"
        : [sums] "+x"(sums)
        : [magnitudes] "x"(x.magnitudes), [weights] "x"(_mm256_sign_epi8(weights, x.signs)));
    return sums;
  }
};

#endif

struct Int8Stripe {
  const BlockGemm& product;
  const char* weights;
  int64_t first;        // column
  int64_t columns;      // of the last vector
  int64_t bytes_ahead;  // for each step of the depth, as in vector_gemm.cc
};

template <class Dots>
HWY_INLINE void StoreInt8Sums(const typename Dots::Sums (&sums)[Dots::kParts], int32_t* y,
                              int64_t columns) {
  if (columns == kInt8VectorColumns) return Dots::Store(sums, y);
  int32_t lanes[kInt8VectorColumns];
  Dots::Store(sums, lanes);
  std::memcpy(y, lanes, columns * sizeof(int32_t));
}

template <class Dots, int kRows, int kVectors>
HWY_NOINLINE void MultiplyInt8Rows(const Int8Stripe& stripe, const char* ahead, int64_t row) {
  constexpr int kParts = Dots::kParts, kAllParts = kVectors * kParts;
  constexpr int64_t kPartBytes = kInt8VectorBytes / kParts;
  const BlockGemm& product = stripe.product;
  const char* HWY_RESTRICT x = product.x + row * product.x_row_bytes;
  const char* HWY_RESTRICT weights = stripe.weights;
  const int64_t x_row_bytes = product.x_row_bytes, in = product.in;
  typename Dots::Sums sums[kRows][kAllParts];
#pragma GCC unroll 4
  for (auto& of_row : sums) {
#pragma GCC unroll 12
    for (auto& sum : of_row) sum = Dots::Zero();
  }
  const auto step = [&](const char* from, int64_t bytes) HWY_ATTR {
    typename Dots::Weights columns[kAllParts];
#pragma GCC unroll 12
    for (int part = 0; part < kAllParts; ++part) {
      columns[part] = Dots::Load(weights + part * kPartBytes);
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      int32_t four = 0;
      std::memcpy(&four, from + r * x_row_bytes, bytes);
      const typename Dots::Factors factors = Dots::Repeat(four);
#pragma GCC unroll 12
      for (int part = 0; part < kAllParts; ++part) {
        sums[r][part] = Dots::Add(factors, columns[part], sums[r][part]);
      }
    }
    weights += kVectors * kInt8VectorBytes;
    __builtin_prefetch(ahead);
    ahead += stripe.bytes_ahead;
  };
  int64_t k = 0;
  for (; k + kInt8Step <= in; k += kInt8Step) step(x + k, kInt8Step);
  if (k < in) step(x + k, in - k);
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    int32_t* const y = reinterpret_cast<int32_t*>(product.y) + (row + r) * product.y_stride;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      typename Dots::Sums of_vector[kParts];
#pragma GCC unroll 4
      for (int part = 0; part < kParts; ++part) of_vector[part] = sums[r][v * kParts + part];
      StoreInt8Sums<Dots>(of_vector, y + stripe.first + v * kInt8VectorColumns,
                          v + 1 == kVectors ? stripe.columns : kInt8VectorColumns);
    }
  }
}

template <class Dots, int kVectors>
HWY_INLINE void MultiplyInt8Stripe(const Int8Stripe& stripe) {
  const int64_t steps = CeilDivide(stripe.product.in, kInt8Step);
  const char* ahead = stripe.weights + steps * kVectors * kInt8VectorBytes;
  int64_t row = 0;
  for (; row + Dots::kRows <= stripe.product.rows; row += Dots::kRows) {
    MultiplyInt8Rows<Dots, Dots::kRows, kVectors>(stripe, ahead, row);
    ahead += steps * stripe.bytes_ahead;
  }
  for (; row < stripe.product.rows; ++row) MultiplyInt8Rows<Dots, 1, kVectors>(stripe, ahead, row);
}

template <class Dots>
HWY_INLINE void MultiplyInt8With(const BlockGemm& product) {
  for (int64_t first = 0; first < product.width; first += kInt8Columns) {
    const int64_t columns = std::min(kInt8Columns, product.width - first);
    const int64_t vectors = CeilDivide(columns, kInt8VectorColumns);
    const Int8Stripe stripe = {
        product, product.weight + first * RoundUp(product.in, kInt8Step), first,
        columns - (vectors - 1) * kInt8VectorColumns,
        vectors * kInt8VectorBytes / std::max(int64_t{1}, product.rows / Dots::kRows)};
    switch (vectors) {
      case 1:
        MultiplyInt8Stripe<Dots, 1>(stripe);
        break;
      case 2:
        MultiplyInt8Stripe<Dots, 2>(stripe);
        break;
      default:
        MultiplyInt8Stripe<Dots, kStripeVectors>(stripe);
        break;
    }
  }
}

bool UsesInt8Dots() {
  static const bool has_dots = HasInt8Dots();
  return has_dots;
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
