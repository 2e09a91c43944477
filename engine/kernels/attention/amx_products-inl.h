// The two products of attention on AMX. Included once per instruction set.

#if defined(ATTENDANT_ENGINE_KERNELS_AMX_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTENDANT_ENGINE_KERNELS_AMX_PRODUCTS_INL_H_
#undef ATTENDANT_ENGINE_KERNELS_AMX_PRODUCTS_INL_H_
#else
#define ATTENDANT_ENGINE_KERNELS_AMX_PRODUCTS_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>

#include "engine/base/matrix_view.h"
#include "engine/kernels/amx_tiles-inl.h"
#include "engine/kernels/attention/attention_block.h"
#include "engine/kernels/attention/packing-inl.h"
#include "engine/kernels/attention/vector_products-inl.h"
#include "engine/kernels/simd-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace attendant {
namespace HWY_NAMESPACE {

#if HWY_TARGET <= HWY_AVX3

inline constexpr int64_t kFloatBytes = sizeof(float);

// Tiles 0 to 3 hold sums, tile 2 r + v those of tile row r and tile column v. Tiles 4 and 5 hold
// rows of the left matrix, and tiles 6 and 7 columns of the right matrix.
template <int kRow, int kColumn>
HWY_INLINE void MultiplyTiles() {
  Bf16Tiles::MultiplyAdd<2 * kRow + kColumn, 4 + kRow, 6 + kColumn>();
}

HWY_INLINE void ZeroSums() {
  ZeroTile<0>();
  ZeroTile<1>();
  ZeroTile<2>();
  ZeroTile<3>();
}

// LoadSums and StoreSums load and store all sums as floats [32, kVectors vectors].
template <int kVectors>
HWY_INLINE void LoadSums(const float* from) {
  constexpr int64_t kStride = Width<kVectors>(), kRowBytes = kStride * kFloatBytes;
  LoadTile<0>(from, kRowBytes);
  LoadTile<2>(from + kTileRows * kStride, kRowBytes);
  if constexpr (kVectors == 2) {
    LoadTile<1>(from + kLanes, kRowBytes);
    LoadTile<3>(from + kTileRows * kStride + kLanes, kRowBytes);
  }
}

template <int kVectors>
HWY_INLINE void StoreSums(float* to) {
  constexpr int64_t kStride = Width<kVectors>(), kRowBytes = kStride * kFloatBytes;
  StoreTile<0>(to, kRowBytes);
  StoreTile<2>(to + kTileRows * kStride, kRowBytes);
  if constexpr (kVectors == 2) {
    StoreTile<1>(to + kLanes, kRowBytes);
    StoreTile<3>(to + kTileRows * kStride + kLanes, kRowBytes);
  }
}

// 32 rows of a left matrix. A step in depth has 16 elements of each.
struct LeftTiles {
  const float* data;
  int64_t row_stride;
  int64_t step_stride;
};

// Computes sums += a b, where b is [depth, kVectors vectors] of bf16 pairs. Adds step by step, and
// within a step in the order of AMX.
template <int kVectors>
HWY_INLINE void AddProducts(LeftTiles a, const float* b, int64_t depth) {
  constexpr int64_t kStride = Width<kVectors>(), kRowBytes = kStride * kFloatBytes;
  const int64_t a_row_bytes = a.row_stride * kFloatBytes;
  for (int64_t k = 0; k < depth; k += kTileRows, a.data += a.step_stride, b += 16 * kStride) {
    LoadTile<4>(a.data, a_row_bytes);
    LoadTile<6>(b, kRowBytes);
    MultiplyTiles<0, 0>();
    LoadTile<5>(a.data + kTileRows * a.row_stride, a_row_bytes);
    MultiplyTiles<1, 0>();
    if constexpr (kVectors == 2) {
      LoadTile<7>(b + kLanes, kRowBytes);
      MultiplyTiles<0, 1>();
      MultiplyTiles<1, 1>();
    }
  }
}

// The products of VectorProducts on AMX. Computes the context transposed, [Dv, queries], as V^T
// times the weights: values are packed as V^T, and weights can be a right matrix without packing.
// Tiles extend beyond the last key and the last column and read whatever is in the scratch memory;
// the results of these rows are discarded.
class AmxProducts {
 public:
  static constexpr AttentionOperands kOperands = AttentionOperands::kTiles;
  static constexpr int64_t kKeyStep = 32;
  // The number of keys for which sums are loaded and stored once.
  static constexpr int64_t kKeyChunk = kKeyBlock;

  AmxProducts(const AttentionBlock& block, const AttentionScratch& scratch)
      : block_(block), scratch_(scratch), value_width_(RoundUpToPanel(block.values.cols)) {}

  KeyBlock TakeKeys(int64_t first, int64_t count) const {
    const MatrixView<const float> keys = block_.keys.Rows(first, count);
    PackRows<kOperands>(keys, scratch_.keys);
    const MatrixView<const float> values = block_.values.Rows(first, count);
    for (int64_t key = 0; key < count; key += kKeyStep) {
      PackValues(values.Rows(key, std::min(kKeyStep, count - key)),
                 scratch_.values + key / kKeyStep * value_width_ * kTileRows);
    }
    const int64_t depth = Elements<kOperands>(keys.cols);
    // A step in depth has 16 elements of value_width_ rows.
    return {first, count, {scratch_.keys, count, depth, depth}, scratch_.values, value_width_, 0};
  }

  template <int kVectors>
  void Score(const KeyBlock& block, Floats (&maxima)[kVectors]) const {
    const FloatTag d;
    for (Floats& maximum : maxima) maximum = hn::Set(d, -std::numeric_limits<float>::infinity());
    for (int64_t key = 0; key < block.count; key += kKeyStep) {
      float* scores = scratch_.scores + key * Width<kVectors>();
      ZeroSums();
      AddProducts<kVectors>({block.keys.row(key), block.keys.stride, kTileRows}, scratch_.queries,
                            block.keys.cols);
      StoreSums<kVectors>(scores);
      const int64_t count = std::min(kKeyStep, block.count - key);
      for (int64_t i = 0; i < count * kVectors; ++i) {
        Floats& maximum = maxima[i % kVectors];
        maximum = hn::Max(maximum, hn::Load(d, scores + i * kLanes));
      }
    }
  }

  template <int kVectors>
  void Scale(const QueryPanel& panel, const float* factors) const {
    const FloatTag d;
    float* context = Context(panel);
    for (int64_t i = 0; i < block_.values.cols * kVectors; ++i, context += kLanes) {
      const Floats factor = hn::Load(d, factors + i % kVectors * kLanes);
      hn::Store(hn::Mul(hn::Load(d, context), factor), d, context);
    }
  }

  template <int kVectors>
  void AddValues(const KeyBlock& block, const KeyChunk& chunk, const QueryPanel& panel,
                 const float* factors) const {
    const float* weights = scratch_.scores + chunk.first * Width<kVectors>();
    const float* values = block.values + Elements<kOperands>(chunk.first) * value_width_;
    for (int64_t col = 0; col < block_.values.cols; col += 2 * kTileRows) {
      float* sums = Context(panel) + col * Width<kVectors>();
      chunk.is_first ? ZeroSums() : LoadSums<kVectors>(sums);
      AddProducts<kVectors>({values + col * kTileRows, kTileRows, value_width_ * kTileRows},
                            weights, Elements<kOperands>(chunk.count));
      StoreSums<kVectors>(sums);
    }
    if (!chunk.is_last) return;
    for (int64_t col = 0; col < block_.values.cols; col += kLanes) {
      for (int64_t q = 0; q < panel.count; q += 4) PlaceContext<kVectors>(panel, q, col, factors);
    }
  }

  void Finish(int64_t) const {}

 private:
  // Packs V^T of at most 32 keys: rows of 16 bf16 pairs.
  void PackValues(MatrixView<const float> values, float* to) const {
    const float* rows[kKeyStep];
    for (int64_t key = 0; key < kKeyStep; ++key) {
      rows[key] = values.row(std::min(key, values.rows - 1));
    }
    const FloatTag d;
    const int64_t lanes = static_cast<int64_t>(kLanes);
    for (int64_t col = 0; col < values.cols; col += 4) {
      const int64_t count = std::min<int64_t>(4, values.cols - col);
      Floats low[4], high[4];
      LoadColumns(rows, col, count, low);
      LoadColumns(rows + kLanes, col, count, high);
      for (int64_t j = 0; j < count; ++j, to += kTileRows) {
        // Keys beyond the last must be zero: their weights are, but zero times infinity is NaN.
        low[j] = hn::IfThenElseZero(FirstLanes(values.rows), low[j]);
        high[j] = hn::IfThenElseZero(FirstLanes(values.rows - lanes), high[j]);
        hn::Store(RoundToHalves(low[j], high[j]), d, to);
      }
    }
  }

  static HWY_INLINE hn::Mask<FloatTag> FirstLanes(int64_t count) {
    const int64_t lanes = static_cast<int64_t>(kLanes);
    return hn::FirstN(FloatTag(), static_cast<size_t>(std::clamp<int64_t>(count, 0, lanes)));
  }

  // Writes a vector of columns of the context of four queries of the panel, from `first` on.
  template <int kVectors>
  void PlaceContext(const QueryPanel& panel, int64_t first, int64_t col,
                    const float* factors) const {
    const float* rows[kLanes];
    for (size_t i = 0; i < kLanes; ++i) {
      rows[i] = Context(panel) + (col + static_cast<int64_t>(i)) * Width<kVectors>();
    }
    Floats context[4];
    LoadColumns(rows, first, 4, context);
    for (int64_t q = first; q < std::min(first + 4, panel.count); ++q) {
      const Floats done = hn::Mul(context[q - first], hn::Set(FloatTag(), factors[q]));
      StoreUpTo(done, block_.context.row(panel.first + q) + col, block_.context.cols - col);
    }
  }

  // Returns the context of the panel, [value_width_, queries].
  float* Context(const QueryPanel& panel) const {
    return scratch_.context + panel.first * value_width_;
  }

  const AttentionBlock& block_;
  const AttentionScratch& scratch_;
  const int64_t value_width_;
  const TileConfiguration configuration_;
};

#endif

}  // namespace HWY_NAMESPACE
}  // namespace attendant
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
