// Small matrix products for attention, and the packing that feeds them; included once per
// instruction set.

#if defined(ATTENDANT_ENGINE_KERNELS_MICRO_KERNEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTENDANT_ENGINE_KERNELS_MICRO_KERNEL_INL_H_
#undef ATTENDANT_ENGINE_KERNELS_MICRO_KERNEL_INL_H_
#else
#define ATTENDANT_ENGINE_KERNELS_MICRO_KERNEL_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "engine/base/matrix_view.h"
#include "engine/kernels/simd-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace attendant {
namespace HWY_NAMESPACE {

// Columns of a right operand that the micro-kernel takes at once.
inline constexpr int64_t kPanel = 2 * static_cast<int64_t>(kLanes);

HWY_INLINE int64_t PaddedToPanel(int64_t cols) { return (cols + kPanel - 1) / kPanel * kPanel; }

// Rows of a left operand that the micro-kernel takes at once: 12 accumulators, which 16 registers
// can hold.
inline constexpr int64_t kMicroRows = 6;

// Element (r, k) is at data[r * row_stride + k * depth_stride].
struct LeftOperand {
  const float* data;
  int64_t row_stride;
  int64_t depth_stride;
};

// Some vectors of each row; row k starts at data + k * stride.
struct RightOperand {
  const float* data;
  int64_t stride;
};

template <int kRows, int kVectors>
using Tile = Floats[kRows][kVectors];

template <int kRows, int kVectors>
HWY_INLINE void ZeroTile(Tile<kRows, kVectors>& sums) {
  for (auto& row : sums) {
    for (Floats& sum : row) sum = hn::Zero(FloatTag());
  }
}

// sums += a[kRows, depth] b[depth, kVectors vectors]; each element sums in the order of depth, so
// its bits do not depend on the shape of the tile.
template <int kRows, int kVectors>
HWY_INLINE void MultiplyTile(LeftOperand a, RightOperand b, int64_t depth,
                             Tile<kRows, kVectors>& sums) {
  const FloatTag d;
  for (int64_t k = 0; k < depth; ++k, a.data += a.depth_stride, b.data += b.stride) {
    Floats right[kVectors];
    for (int v = 0; v < kVectors; ++v) right[v] = hn::LoadU(d, b.data + v * kLanes);
    for (int r = 0; r < kRows; ++r) {
      const Floats left = hn::Set(d, a.data[r * a.row_stride]);
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(left, right[v], sums[r][v]);
    }
  }
}

// function(std::integral_constant<int, count>, begin) for tiles of rows that cover [0, rows): as
// few as can be, and even, because a tile of few rows leaves the arithmetic units waiting.
template <class Function>
HWY_INLINE void ForRowTiles(int64_t rows, const Function& function) {
  const int64_t tiles = (rows + kMicroRows - 1) / kMicroRows;
  const int64_t fewer = rows / tiles;
  const int64_t larger_tiles = rows % tiles;
  int64_t begin = 0;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const int64_t count = tile < larger_tiles ? fewer + 1 : fewer;
    switch (count) {
      case 1:
        function(std::integral_constant<int, 1>(), begin);
        break;
      case 2:
        function(std::integral_constant<int, 2>(), begin);
        break;
      case 3:
        function(std::integral_constant<int, 3>(), begin);
        break;
      case 4:
        function(std::integral_constant<int, 4>(), begin);
        break;
      case 5:
        function(std::integral_constant<int, 5>(), begin);
        break;
      default:
        function(std::integral_constant<int, kMicroRows>(), begin);
        break;
    }
    begin += count;
  }
}

// Packs [depth, cols] as a right operand: panels of kPanel columns, each panel's rows back to back,
// so that neither cache aliasing nor a partial vector can happen in the inner loop. Columns beyond
// the last are zero.
HWY_INLINE void PackPanels(MatrixView<const float> matrix, float* panels) {
  const FloatTag d;
  const int64_t whole = matrix.cols / kPanel * kPanel;
  for (int64_t k = 0; k < matrix.rows; ++k) {
    float* to = panels + k * kPanel;
    for (int64_t col = 0; col < whole; col += kPanel, to += matrix.rows * kPanel) {
      hn::StoreU(hn::LoadU(d, matrix.row(k) + col), d, to);
      hn::StoreU(hn::LoadU(d, matrix.row(k) + col + kLanes), d, to + kLanes);
    }
    if (whole < matrix.cols) {
      std::fill(std::copy_n(matrix.row(k) + whole, matrix.cols - whole, to), to + kPanel, 0.0f);
    }
  }
}

// Copies [rows, cols] densely.
HWY_INLINE void PackRows(MatrixView<const float> matrix, float* to) {
  for (int64_t r = 0; r < matrix.rows; ++r, to += matrix.cols) {
    TransformRow(matrix.row(r), static_cast<size_t>(matrix.cols), to,
                 [](Floats x) HWY_ATTR { return x; });
  }
}

#if HWY_TARGET != HWY_SCALAR
// Four floats of each of kCount / 4 rows, every fourth one.
template <size_t kCount>
HWY_INLINE hn::Vec<hn::FixedTag<float, kCount>> LoadBlocks(const float* const* rows,
                                                           int64_t column) {
  const hn::FixedTag<float, kCount> d;
  if constexpr (kCount == 4) {
    return hn::LoadU(d, rows[0] + column);
  } else {
    return hn::Combine(d, LoadBlocks<kCount / 2>(rows + kCount / 2, column),
                       LoadBlocks<kCount / 2>(rows, column));
  }
}

// Columns [column, column + 4) of kLanes rows, transposed: lane i of result j is rows[i][column +
// j].
HWY_INLINE void LoadFourColumns(const float* const* rows, int64_t column, Floats (&columns)[4]) {
  const FloatTag d;
  const Floats row0 = LoadBlocks<kLanes>(rows, column);
  const Floats row1 = LoadBlocks<kLanes>(rows + 1, column);
  const Floats row2 = LoadBlocks<kLanes>(rows + 2, column);
  const Floats row3 = LoadBlocks<kLanes>(rows + 3, column);
  const Floats even_low = hn::InterleaveLower(d, row0, row2);
  const Floats even_high = hn::InterleaveUpper(d, row0, row2);
  const Floats odd_low = hn::InterleaveLower(d, row1, row3);
  const Floats odd_high = hn::InterleaveUpper(d, row1, row3);
  columns[0] = hn::InterleaveLower(d, even_low, odd_low);
  columns[1] = hn::InterleaveUpper(d, even_low, odd_low);
  columns[2] = hn::InterleaveLower(d, even_high, odd_high);
  columns[3] = hn::InterleaveUpper(d, even_high, odd_high);
}
#endif

// Packs the transpose of `cols` columns of kVectors vectors of rows as a right operand.
template <int kVectors>
HWY_INLINE void PackTransposed(const float* const* rows, int64_t cols, float* to) {
  constexpr int64_t kWidth = kVectors * static_cast<int64_t>(kLanes);
  int64_t col = 0;
#if HWY_TARGET != HWY_SCALAR
  for (; col + 4 <= cols; col += 4) {
    for (int v = 0; v < kVectors; ++v) {
      Floats columns[4];
      LoadFourColumns(rows + v * kLanes, col, columns);
      for (int j = 0; j < 4; ++j) {
        hn::StoreU(columns[j], FloatTag(), to + (col + j) * kWidth + v * kLanes);
      }
    }
  }
#endif
  for (; col < cols; ++col) {
    for (int64_t i = 0; i < kWidth; ++i) to[col * kWidth + i] = rows[i][col];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace attendant
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
