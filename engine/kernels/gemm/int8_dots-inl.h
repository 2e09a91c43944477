// The int8 products of the vector GEMM (vector_gemm.h). Included once per instruction set, by
// Highway's foreach_target. In intrinsics, because Highway 1.0.3 has no products of bytes.

#include "engine/kernels/gemm/vector_gemm.h"

#ifndef ATTENDANT_ENGINE_KERNELS_GEMM_INT8_DOTS_LAYOUT_
#define ATTENDANT_ENGINE_KERNELS_GEMM_INT8_DOTS_LAYOUT_

#include <algorithm>
#include <cstring>

#include "engine/base/rounding.h"

namespace attendant {
namespace {

// The packed weight is cut into stripes of up to kInt8Columns columns, padded with zeros to whole
// vectors of kInt8VectorColumns. In a stripe, four elements of the depth of one column lie side by
// side, then those of the next column, and so on, step after step.
constexpr int64_t kInt8Step = 4;
constexpr int64_t kInt8VectorColumns = 8;
constexpr int64_t kInt8Columns = 24;

inline int64_t Int8WeightBytes(int64_t in, int64_t width) {
  return RoundUp(in, kInt8Step) * RoundUp(width, kInt8VectorColumns);
}

inline void PackInt8Weight(const VectorWeightRows& rows, char* packed) {
  std::memset(packed, 0, Int8WeightBytes(rows.in, rows.width));
  for (int64_t first = 0; first < rows.width; first += kInt8Columns) {
    const int64_t columns = std::min(kInt8Columns, rows.width - first);
    const int64_t step_bytes = RoundUp(columns, kInt8VectorColumns) * kInt8Step;
    for (int64_t k = 0; k < rows.in; k += kInt8Step, packed += step_bytes) {
      for (int64_t c = 0; c < columns; ++c) {
        std::memcpy(packed + c * kInt8Step, rows.data + (first + c) * rows.row_bytes + k,
                    std::min(kInt8Step, rows.in - k));
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

#include "engine/kernels/isa.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace attendant {
namespace HWY_NAMESPACE {
namespace {

constexpr int kInt8Vectors = static_cast<int>(kInt8Columns / kInt8VectorColumns);

// Both return sum + the sums of four products, for kRows rows at a time, whose sums fit into the
// registers. The product of unsigned and signed bytes becomes one of signed bytes by the magnitude
// of x and the weight with the sign of x.
//
// A pair of products is at most 2 * 127 * 127 = 32258, so the sum of 16 bits does not saturate.
// Measured: widening to 16 bits, whose products need no sign, is slower.
struct PairDots {
  static constexpr int kRows = 2;
  static HWY_INLINE __m256i Add(__m256i magnitudes, __m256i signed_weights, __m256i sum) {
    const __m256i pairs = _mm256_maddubs_epi16(magnitudes, signed_weights);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
};

// For CPUs with AVX-VNNI. In assembly for the reason that RoundToHalves (simd-inl.h) is.
struct QuadDots {
  static constexpr int kRows = 4;
  static HWY_INLINE __m256i Add(__m256i magnitudes, __m256i signed_weights, __m256i sum) {
    asm("%{vex%} vpdpbusd %[weights], %[magnitudes], %[sum]"
        : [sum] "+x"(sum)
        : [magnitudes] "x"(magnitudes), [weights] "x"(signed_weights));
    return sum;
  }
};

struct Int8Stripe {
  const VectorGemm& product;
  const char* weights;
  int64_t first;        // column
  int64_t columns;      // of the last vector
  int64_t bytes_ahead;  // for each step of the depth, as in vector_gemm.cc
};

HWY_INLINE void StoreInt8Sums(__m256i sums, int32_t* y, int64_t columns) {
  if (columns == kInt8VectorColumns) {
    return _mm256_storeu_si256(reinterpret_cast<__m256i*>(y), sums);
  }
  alignas(32) int32_t lanes[kInt8VectorColumns];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), sums);
  std::memcpy(y, lanes, columns * sizeof(int32_t));
}

template <class Dots, int kRows, int kVectors>
HWY_NOINLINE void MultiplyInt8Rows(const Int8Stripe& stripe, const char* ahead, int64_t row) {
  const VectorGemm& product = stripe.product;
  const char* HWY_RESTRICT x = product.x + row * product.x_row_bytes;
  const char* HWY_RESTRICT weights = stripe.weights;
  const int64_t x_row_bytes = product.x_row_bytes, in = product.in;
  __m256i sums[kRows][kVectors];
#pragma GCC unroll 4
  for (auto& of_row : sums) {
#pragma GCC unroll 4
    for (__m256i& sum : of_row) sum = _mm256_setzero_si256();
  }
  const auto step = [&](const char* from, int64_t bytes) HWY_ATTR {
    __m256i columns[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      columns[v] = _mm256_load_si256(reinterpret_cast<const __m256i*>(weights) + v);
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      int32_t four = 0;
      std::memcpy(&four, from + r * x_row_bytes, bytes);
      const __m256i factors = _mm256_set1_epi32(four);
      const __m256i magnitudes = _mm256_abs_epi8(factors);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = Dots::Add(magnitudes, _mm256_sign_epi8(columns[v], factors), sums[r][v]);
      }
    }
    weights += kVectors * sizeof(__m256i);
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
      StoreInt8Sums(sums[r][v], y + stripe.first + v * kInt8VectorColumns,
                    v + 1 == kVectors ? stripe.columns : kInt8VectorColumns);
    }
  }
}

template <class Dots, int kVectors>
HWY_INLINE void MultiplyInt8Stripe(const Int8Stripe& stripe) {
  const int64_t steps = CeilDivide(stripe.product.in, kInt8Step);
  const char* ahead = stripe.weights + steps * kVectors * static_cast<int64_t>(sizeof(__m256i));
  int64_t row = 0;
  for (; row + Dots::kRows <= stripe.product.rows; row += Dots::kRows) {
    MultiplyInt8Rows<Dots, Dots::kRows, kVectors>(stripe, ahead, row);
    ahead += steps * stripe.bytes_ahead;
  }
  for (; row < stripe.product.rows; ++row) MultiplyInt8Rows<Dots, 1, kVectors>(stripe, ahead, row);
}

template <class Dots>
HWY_INLINE void MultiplyInt8With(const VectorGemm& product) {
  for (int64_t first = 0; first < product.width; first += kInt8Columns) {
    const int64_t columns = std::min(kInt8Columns, product.width - first);
    const int64_t vectors = CeilDivide(columns, kInt8VectorColumns);
    const Int8Stripe stripe = {product, product.weight + first * RoundUp(product.in, kInt8Step),
                               first, columns - (vectors - 1) * kInt8VectorColumns,
                               vectors * static_cast<int64_t>(sizeof(__m256i)) /
                                   std::max(int64_t{1}, product.rows / Dots::kRows)};
    switch (vectors) {
      case 1:
        MultiplyInt8Stripe<Dots, 1>(stripe);
        break;
      case 2:
        MultiplyInt8Stripe<Dots, 2>(stripe);
        break;
      default:
        MultiplyInt8Stripe<Dots, kInt8Vectors>(stripe);
        break;
    }
  }
}

void MultiplyInt8(const VectorGemm& product) {
  static const bool has_vnni = HasAvxVnni();
  if (has_vnni) return MultiplyInt8With<QuadDots>(product);
  MultiplyInt8With<PairDots>(product);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace attendant
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
