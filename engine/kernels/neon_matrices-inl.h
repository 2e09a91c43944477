// Products of small matrices on arm64 (SMMLA, BFMMLA). Included once per instruction set; empty
// except for NEON.

#if defined(ATTENDANT_ENGINE_KERNELS_NEON_MATRICES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTENDANT_ENGINE_KERNELS_NEON_MATRICES_INL_H_
#undef ATTENDANT_ENGINE_KERNELS_NEON_MATRICES_INL_H_
#else
#define ATTENDANT_ENGINE_KERNELS_NEON_MATRICES_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "engine/kernels/simd-inl.h"
#include "hwy/highway.h"

#if HWY_TARGET == HWY_NEON
HWY_BEFORE_NAMESPACE();
namespace attendant {
namespace HWY_NAMESPACE {

// A matrix instruction multiplies two rows of x by two columns of the weight, over this number of
// bytes of the depth.
inline constexpr int64_t kMatrixDepth = 8;

// The elements of a weight for each instruction. Add adds the products of two rows with two columns
// to four sums: of the first row with both columns, then of the second row. In assembly for the
// same reason as RoundToHalves (simd-inl.h).
struct Int8Matrix {
  // For CPUs with HasInt8Matrices (isa.h). The sums are int32.
  static HWY_INLINE float32x4_t Add(uint8x16_t rows, uint8x16_t columns, float32x4_t sums) {
    asm(".arch armv8.2-a+crypto+i8mm\n\tsmmla %[sums].4s, %[rows].16b, %[columns].16b"
        : [sums] "+w"(sums)
        : [rows] "w"(rows), [columns] "w"(columns));
    return sums;
  }
};

// For CPUs with HasBf16Units. The sums are float32: products are added in pairs of adjacent
// elements, and each pair to the sum, both rounded to odd, with denormals as zeros. BFDOT has the
// same bits, but needs twice as many instructions, each of which computes a single row.
struct Bf16Matrix {
  static HWY_INLINE float32x4_t Add(uint8x16_t rows, uint8x16_t columns, float32x4_t sums) {
    asm(".arch armv8.2-a+crypto+bf16\n\tbfmmla %[sums].4s, %[rows].8h, %[columns].8h"
        : [sums] "+w"(sums)
        : [rows] "w"(rows), [columns] "w"(columns));
    return sums;
  }
};

// Some rows of x, `row_bytes` apart, and the bytes of the depth.
struct MatrixRows {
  const char* x;
  int64_t row_bytes;
  int64_t depth;
};

// Prefetches of the weight: the address for the first step, and the distance between steps.
struct MatrixPrefetch {
  const char* address;
  int64_t step_bytes;
};

// Adds one step of the depth. load(r) loads it from row r of x.
template <class Matrix, int kPairs, int kColumnPairs, class Load>
HWY_INLINE void AddStep(const Load& load, const char* columns,
                        float32x4_t (&blocks)[kPairs][kColumnPairs]) {
  uint8x16_t rows[kPairs];
#pragma GCC unroll 4
  for (int p = 0; p < kPairs; ++p) rows[p] = vcombine_u8(load(2 * p), load(2 * p + 1));
#pragma GCC unroll 12
  for (int c = 0; c < kColumnPairs; ++c) {
    const uint8x16_t pair = vld1q_u8(reinterpret_cast<const uint8_t*>(columns) + c * 16);
#pragma GCC unroll 4
    for (int p = 0; p < kPairs; ++p) blocks[p][c] = Matrix::Add(rows[p], pair, blocks[p][c]);
  }
}

// Computes the sums of products of kRows rows and kVectors vectors of columns, in the order of the
// depth. A step of the weight has kMatrixDepth bytes of the first column, then of the next, and so
// on; its last step is padded with zeros. An odd last row is multiplied twice, so that every row is
// computed by the same instructions.
template <class Matrix, int kRows, int kVectors>
HWY_INLINE void SumMatrices(const MatrixRows& x, const char* HWY_RESTRICT weight,
                            MatrixPrefetch ahead, Floats (&sums)[kRows][kVectors]) {
  constexpr int kPairs = (kRows + 1) / 2, kColumnPairs = 2 * kVectors;
  float32x4_t blocks[kPairs][kColumnPairs];
#pragma GCC unroll 4
  for (auto& of_rows : blocks) {
#pragma GCC unroll 12
    for (auto& block : of_rows) block = vdupq_n_f32(0);
  }
  const auto row = [&](int r) HWY_ATTR { return x.x + std::min(r, kRows - 1) * x.row_bytes; };
  int64_t k = 0;
  for (; k + kMatrixDepth <= x.depth; k += kMatrixDepth) {
    __builtin_prefetch(ahead.address);
    ahead.address += ahead.step_bytes;
    const auto load = [&](int r) HWY_ATTR {
      return vld1_u8(reinterpret_cast<const uint8_t*>(row(r) + k));
    };
    AddStep<Matrix>(load, weight, blocks);
    weight += kColumnPairs * 2 * kMatrixDepth;
  }
  if (k < x.depth) {
    const auto load = [&](int r) HWY_ATTR {
      uint8_t last[kMatrixDepth] = {};
      std::memcpy(last, row(r) + k, static_cast<size_t>(x.depth - k));
      return vld1_u8(last);
    };
    AddStep<Matrix>(load, weight, blocks);
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const auto left = vreinterpretq_f64_f32(blocks[r / 2][2 * v]);
      const auto right = vreinterpretq_f64_f32(blocks[r / 2][2 * v + 1]);
      const auto both = r % 2 == 0 ? vtrn1q_f64(left, right) : vtrn2q_f64(left, right);
      sums[r][v] = Floats(vreinterpretq_f32_f64(both));
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace attendant
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET == HWY_NEON

#endif  // per-target include guard
