// StepLayout: the layout of weights of the vector GEMM whose products take several elements of the
// depth at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "engine/base/rounding.h"
#include "engine/kernels/gemm/block_gemm.h"
#include "engine/kernels/isa.h"
#include "hwy/base.h"

namespace attendant {

// The SIMD vectors in a stripe of a packed weight, except for the pair dots of int8. On arm64,
// g++ 12 does not keep the sums of a third one in registers.
inline constexpr int kStripeVectors = HWY_ARCH_ARM_A64 ? 2 : 3;

// The number of elements of the depth that bfloat16 weights have side by side, when x is float32. A
// pair fills 32 bits, so that x86 widens either element by one instruction. NEON does so anyway.
inline constexpr int64_t kBf16WeightStep = HWY_ARCH_ARM_A64 ? 1 : 2;

// A packed weight that is split into stripes of up to `stripe_columns` columns, padded with zeros
// to whole vectors of `vector_columns`. A step of a stripe has `step_bytes` bytes of the depth of
// the first column, then as many of the next column, and so on. The steps follow each other, and
// are padded with zeros to whole steps.
struct StepLayout {
  int64_t step_bytes;
  int64_t vector_columns;
  int64_t stripe_columns;
};

inline constexpr int64_t kInt8Step = 4;
inline constexpr int64_t kInt8VectorColumns = 8;
inline constexpr int64_t kInt8VectorBytes = kInt8Step * kInt8VectorColumns;
// For each kernel in int8_dots-inl.h. On x86, pair dots sum fewer rows at once, so that the sums of
// a fourth vector are in registers too: each element of x that is loaded then serves more columns.
inline constexpr int kPairDotsVectors = HWY_ARCH_ARM_A64 ? 2 : 4;
inline constexpr int kQuadDotsVectors = kStripeVectors;
inline constexpr StepLayout kPairDotsLayout = {kInt8Step, kInt8VectorColumns,
                                               kPairDotsVectors* kInt8VectorColumns};
inline constexpr StepLayout kQuadDotsLayout = {kInt8Step, kInt8VectorColumns,
                                               kQuadDotsVectors* kInt8VectorColumns};
// For matrix instructions, see vector_gemm.cc.
inline constexpr StepLayout kMatrixLayout = {8, 4, 4 * kStripeVectors};

inline bool UsesInt8Dots() {
  static const bool has_dots = HasInt8Dots();
  return has_dots;
}

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
    const char* const row = rows.data + first * rows.row_bytes;
    for (int64_t k = 0; k < depth; k += layout.step_bytes) {
      const int64_t bytes = std::clamp(depth - k, int64_t{0}, layout.step_bytes);
      for (int64_t c = 0; c < columns; ++c) {
        std::memcpy(packed + c * layout.step_bytes, row + c * rows.row_bytes + k, bytes);
      }
      packed += line_bytes;
    }
  }
}

}  // namespace attendant
