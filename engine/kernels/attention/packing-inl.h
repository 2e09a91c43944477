// Packing of float32 rows for the products of attention. Included once per instruction set.

#if defined(ATTENDANT_ENGINE_KERNELS_PACKING_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTENDANT_ENGINE_KERNELS_PACKING_INL_H_
#undef ATTENDANT_ENGINE_KERNELS_PACKING_INL_H_
#else
#define ATTENDANT_ENGINE_KERNELS_PACKING_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "engine/base/matrix_view.h"
#include "engine/kernels/attention/attention_block.h"
#include "engine/kernels/attention/micro_kernel-inl.h"
#include "engine/kernels/simd-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace attendant {
namespace HWY_NAMESPACE {

// Returns a 32-bit element for each lane, made of elements that are adjacent in depth. Only bf16
// pairs use `second`.
template <AttentionOperands kOperands>
HWY_INLINE Floats ToElements(Floats first, Floats second) {
  if constexpr (kDepthOf<kOperands> == 2) {
    return RoundToPairs(first, second);
  } else {
    return first;
  }
}

// Rounds packed float32 elements to bfloat16 in place. They remain float32.
HWY_INLINE void RoundPacked(float* values, int64_t count) {
  TransformRow(values, static_cast<size_t>(count), values, [](Floats x) HWY_ATTR {
    const Bits rounded = NarrowToBFloat16(hn::BitCast(BitsTag(), x));
    return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(rounded));
  });
}

// Prefetches the rows [first, first + count) that exist. They are too far apart for hardware
// prefetchers: waiting for their cache lines one by one took a tenth of the time of a short
// sequence.
HWY_INLINE void PrefetchRows(MatrixView<const float> matrix, int64_t first, int64_t count) {
  for (int64_t r = first; r < std::min(first + count, matrix.rows); ++r) {
    for (int64_t col = 0; col < matrix.cols; col += 16) {
      __builtin_prefetch(matrix.row(r) + col, 0, 2);
    }
  }
}

// The number of rows between the packed row and the prefetched row.
inline constexpr int64_t kRowsAhead = 16;

// Packs [depth, cols] as a right matrix: panels of kPanel columns, each with its rows back to back,
// to avoid cache aliasing and partial vectors in the inner loop. Columns beyond the last are zero.
template <AttentionOperands kOperands>
HWY_INLINE void PackPanels(MatrixView<const float> matrix, float* panels) {
  const int64_t panel_stride = Elements<kOperands>(matrix.rows) * kPanel;
  const int64_t whole = matrix.cols / kPanel * kPanel;
  for (int64_t k = 0; k < matrix.rows; k += kDepthOf<kOperands>, panels += kPanel) {
    PrefetchRows(matrix, k + kRowsAhead, kDepthOf<kOperands>);
    const bool is_last = k + 1 == matrix.rows;
    const float* row = matrix.row(k);
    const float* next = is_last ? row : matrix.row(k + 1);
    const auto pack = [&](int64_t col, float* to, const auto& load) HWY_ATTR {
      const Floats second = is_last ? hn::Zero(FloatTag()) : load(next + col);
      hn::StoreU(ToElements<kOperands>(load(row + col), second), FloatTag(), to);
    };
    float* to = panels;
    for (int64_t col = 0; col < whole; col += kPanel, to += panel_stride) {
      const auto load = [](const float* from) HWY_ATTR { return hn::LoadU(FloatTag(), from); };
      pack(col, to, load);
      pack(col + kLanes, to + kLanes, load);
    }
    for (int64_t col = whole; whole < matrix.cols && col < whole + kPanel; col += kLanes) {
      const int64_t left = matrix.cols - col;
      pack(col, to + col - whole,
           [left](const float* from) HWY_ATTR { return LoadUpTo(from, left); });
    }
  }
}

#if HWY_TARGET <= ATTENDANT_BF16_TARGET
// Packs [depth, cols / 2], whose bf16 pairs are adjacent columns, like PackPanels<kPairs> packs
// [depth, cols], whose bf16 pairs are adjacent in depth.
HWY_INLINE void PackPairPanels(MatrixView<const float> matrix, float* panels) {
  constexpr int64_t kTaken = static_cast<int64_t>(kLanes);  // elements of a row for a panel
  const FloatTag d;
  const int64_t panel_stride = CeilDivide(matrix.rows, int64_t{2}) * kPanel;
  for (int64_t k = 0; k < matrix.rows; k += 2, panels += kPanel) {
    const float* row = matrix.row(k);
    const float* next = k + 1 == matrix.rows ? nullptr : matrix.row(k + 1);
    float* to = panels;
    for (int64_t col = 0; col < matrix.cols; col += kTaken, to += panel_stride) {
      const int64_t left = matrix.cols - col;
      const Floats first = LoadUpTo(row + col, left);
      const Floats second = next == nullptr ? hn::Zero(d) : LoadUpTo(next + col, left);
      hn::StoreU(InterleaveLowerHalves(first, second), d, to);
      hn::StoreU(InterleaveUpperHalves(first, second), d, to + kLanes);
    }
  }
}
#else
void PackPairPanels(MatrixView<const float> matrix, float* panels);  // not defined
#endif

// Packs [rows, depth] densely as a left matrix.
template <AttentionOperands kOperands>
HWY_INLINE void PackRows(MatrixView<const float> matrix, float* to) {
  constexpr int64_t kWhole = static_cast<int64_t>(kLanes);
  const int64_t count = Elements<kOperands>(matrix.cols);
  for (int64_t r = 0; r < matrix.rows; ++r, to += count) {
    PrefetchRows(matrix, r + kRowsAhead, 1);
    if constexpr (kDepthOf<kOperands> == 1) {
      TransformRow(matrix.row(r), static_cast<size_t>(count), to,
                   [](Floats x) HWY_ATTR { return x; });
    } else {
      for (int64_t i = 0; i < count; i += kWhole) {
        const float* from = matrix.row(r) + i * 2;
        const int64_t left = matrix.cols - i * 2;
        const Floats elements =
            RoundToHalves(LoadUpTo(from, left), LoadUpTo(from + kWhole, left - kWhole));
        StoreUpTo(elements, to + i, count - i);
      }
    }
  }
}

// Loads four floats of every fourth row, kCount / 4 rows in all.
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

// Loads the columns [column, column + 4) of kLanes rows: lane i of columns[j] is rows[i][column +
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

// Loads `count` <= 4 columns like LoadFourColumns. The other columns are zero.
HWY_INLINE void LoadColumns(const float* const* rows, int64_t column, int64_t count,
                            Floats (&columns)[4]) {
  if (count == 4) return LoadFourColumns(rows, column, columns);
  HWY_ALIGN float lanes[4][kLanes] = {};
  for (int64_t j = 0; j < count; ++j) {
    for (size_t i = 0; i < kLanes; ++i) lanes[j][i] = rows[i][column + j];
  }
  for (int j = 0; j < 4; ++j) columns[j] = hn::Load(FloatTag(), lanes[j]);
}

// Packs the transpose of `cols` columns of kVectors vectors of rows as a right matrix.
template <AttentionOperands kOperands, int kVectors>
HWY_INLINE void PackTransposed(const float* const* rows, int64_t cols, float* to) {
  constexpr int64_t kWidth = kVectors * static_cast<int64_t>(kLanes);
  constexpr int64_t kDepth = kDepthOf<kOperands>;
  const int64_t depth = Elements<kOperands>(cols) * kDepth;
  for (int64_t col = 0; col < depth; col += 4, to += 4 / kDepth * kWidth) {
    for (int v = 0; v < kVectors; ++v) {
      Floats columns[4];
      LoadColumns(rows + v * kLanes, col, std::clamp<int64_t>(cols - col, 0, 4), columns);
      for (int64_t j = 0; j < 4; j += kDepth) {
        if (col + j >= depth) break;
        hn::StoreU(ToElements<kOperands>(columns[j], columns[j + kDepth - 1]), FloatTag(),
                   to + j / kDepth * kWidth + v * kLanes);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace attendant
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
