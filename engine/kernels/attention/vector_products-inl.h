// The two products of attention on SIMD vectors. Included once per instruction set.

#if defined(ATTENDANT_ENGINE_KERNELS_VECTOR_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTENDANT_ENGINE_KERNELS_VECTOR_PRODUCTS_INL_H_
#undef ATTENDANT_ENGINE_KERNELS_VECTOR_PRODUCTS_INL_H_
#else
#define ATTENDANT_ENGINE_KERNELS_VECTOR_PRODUCTS_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>

#include "engine/base/matrix_view.h"
#include "engine/kernels/attention/attention_block.h"
#include "engine/kernels/attention/micro_kernel-inl.h"
#include "engine/kernels/attention/packing-inl.h"
#include "engine/kernels/attention/visible_keys.h"
#include "engine/kernels/simd-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace attendant {
namespace HWY_NAMESPACE {

// Returns the number of columns of kVectors vectors.
template <int kVectors>
constexpr int64_t Width() {
  return kVectors * static_cast<int64_t>(kLanes);
}

// The keys and values of some adjacent tokens.
struct KeyBlock {
  int64_t first;
  int64_t count;
  MatrixView<const float> keys;  // in the number format of the products, like the values
  const float* values;           // panels of columns, panel_stride elements apart
  int64_t value_stride;
  int64_t panel_stride;
};

// `count` <= kVectors * kLanes queries in kVectors vectors. The remaining lanes repeat the last
// query, and their results are discarded.
struct QueryPanel {
  int64_t first;
  int64_t count;
  KeyRange keys;  // visible to any of the queries
};

// A part of a key block.
struct KeyChunk {
  int64_t first;
  int64_t count;
  bool is_first;  // among all chunks that are visible to the panel
  bool is_last;
};

// Computes K Q^T, and weights V into the context, for a panel of queries and a block of keys.
// Scores are [keys, queries] in the scratch memory. The context is [queries, Dv] in the scratch
// memory until it is complete.
template <AttentionOperands kOperandsOf>
class VectorProducts {
 public:
  static constexpr AttentionOperands kOperands = kOperandsOf;
  // The keys of a block that a panel reads begin at a multiple of this.
  static constexpr int64_t kKeyStep = 2;
  // The number of keys whose scores and values stay in the L1 cache from the exponentials to the
  // product.
  static constexpr int64_t kKeyChunk = 128;

  VectorProducts(const AttentionBlock& block, const AttentionScratch& scratch)
      : block_(block), scratch_(scratch), context_stride_(PaddedToPanel(block.context.cols)) {}

  KeyBlock TakeKeys(int64_t first, int64_t count) const {
    const MatrixView<const float> keys = block_.keys.Rows(first, count);
    const MatrixView<const float> values = block_.values.Rows(first, count);
    KeyBlock block{first, count, keys, values.data, values.stride, kPanel};
    if constexpr (kOperands == AttentionOperands::kPairs) {
      if (block_.are_pairs) {
        if (readers() > kGatherAbove) Gather<AttentionOperands::kF32>(block);
        PackPairPanels(values, scratch_.values);
        UsePackedValues(block);
        return block;
      }
    }
    const bool rounds = block_.operands == AttentionOperands::kRounded;
    const bool gather = kOperands != AttentionOperands::kF32 || rounds || readers() > kGatherAbove;
    if (gather) Gather<kOperands>(block);
    if (gather || values.cols % kPanel != 0) {
      PackPanels<kOperands>(values, scratch_.values);
      UsePackedValues(block);
    }
    if (rounds) {
      RoundPacked(scratch_.keys, count * keys.cols);
      RoundPacked(scratch_.values, count * PaddedToPanel(values.cols));
    }
    return block;
  }

  // Computes scores = K Q^T of the packed queries, and the maximum of each query.
  template <int kVectors>
  void Score(const KeyBlock& block, Floats (&maxima)[kVectors]) const {
    const FloatTag d;
    for (Floats& maximum : maxima) maximum = hn::Set(d, -std::numeric_limits<float>::infinity());
    ForRowTiles(block.count, [&](auto rows, int64_t begin) HWY_ATTR {
      constexpr int kRows = decltype(rows)::value;
      Tile<kRows, kVectors> sums;
      ZeroTile<kRows, kVectors>(sums);
      MultiplyTile<kOperands>({block.keys.row(begin), block.keys.stride, 1},
                              {scratch_.queries, Width<kVectors>()}, block.keys.cols, sums);
      float* const to = scratch_.scores + begin * Width<kVectors>();
      ForTile<kRows, kVectors>([&](int r, int v) HWY_ATTR {
        maxima[v] = hn::Max(maxima[v], sums[r][v]);
        hn::Store(sums[r][v], d, to + r * Width<kVectors>() + v * kLanes);
      });
    });
  }

  // Multiplies the partial context of the panel by a factor for each query.
  template <int kVectors>
  void Scale(const QueryPanel& panel, const float* factors) const {
    for (int64_t q = 0; q < panel.count; ++q) {
      float* context = Context(panel.first + q);
      const Floats by = hn::Set(FloatTag(), factors[q]);
      TransformRow(context, static_cast<size_t>(context_stride_), context,
                   [by](Floats x) HWY_ATTR { return hn::Mul(x, by); });
    }
  }

  // Computes context = (context + weights * values) * factor of each query. The last chunk writes
  // the result. The weights have replaced the scores of the chunk.
  template <int kVectors>
  void AddValues(const KeyBlock& block, const KeyChunk& chunk, const QueryPanel& panel,
                 const float* factors) const {
    const FloatTag d;
    const float* weights = scratch_.scores + chunk.first * Width<kVectors>();
    const float* values = block.values + Elements<kOperands>(chunk.first) * block.value_stride;
    for (int64_t col = 0; col < block_.context.cols; col += kPanel, values += block.panel_stride) {
      const bool in_place = chunk.is_last && col + kPanel <= block_.context.cols;
      ForRowTiles(panel.count, [&](auto rows, int64_t begin) HWY_ATTR {
        constexpr int kRows = decltype(rows)::value;
        const int64_t q = panel.first + begin;
        Tile<kRows, 2> sums;
        if (chunk.is_first) {
          ZeroTile<kRows, 2>(sums);
        } else {
          ForTile<kRows, 2>([&](int r, int v) HWY_ATTR {
            sums[r][v] = hn::Load(d, Context(q + r) + col + v * kLanes);
          });
        }
        MultiplyTile<kOperands>({weights + begin, 1, Width<kVectors>()},
                                {values, block.value_stride}, Elements<kOperands>(chunk.count),
                                sums);
        ForTile<kRows, 2>([&](int r, int v) HWY_ATTR {
          const Floats factor = hn::Set(d, factors[begin + r]);
          float* const to = (in_place ? block_.context.row(q + r) : Context(q + r)) + col;
          hn::StoreU(hn::Mul(sums[r][v], factor), d, to + v * kLanes);
        });
      });
    }
  }

  // Copies the columns that AddValues could not write to the result of query q.
  void Finish(int64_t q) const {
    const int64_t in_place = block_.context.cols / kPanel * kPanel;
    std::copy_n(Context(q) + in_place, block_.context.cols - in_place,
                block_.context.row(q) + in_place);
  }

 private:
  // With more queries than this, keys and values are first gathered from the rows of the batch.
  static constexpr int64_t kGatherAbove = 32;

  int64_t readers() const { return block_.queries.rows * block_.sharing; }

  // Packs the keys of the block densely.
  template <AttentionOperands kPacked>
  void Gather(KeyBlock& block) const {
    PackRows<kPacked>(block.keys, scratch_.keys);
    const int64_t depth = Elements<kPacked>(block.keys.cols);
    block.keys = {scratch_.keys, block.count, depth, depth};
  }

  void UsePackedValues(KeyBlock& block) const {
    block.values = scratch_.values;
    block.value_stride = kPanel;
    block.panel_stride = Elements<kOperands>(block.count) * kPanel;
  }

  float* Context(int64_t q) const { return scratch_.context + q * context_stride_; }

  const AttentionBlock& block_;
  const AttentionScratch& scratch_;
  const int64_t context_stride_;
};

// VectorProducts in float32 with the scores w . tanh(q + k) for a query q and a key k.
class AdditiveProducts : public VectorProducts<AttentionOperands::kF32> {
 public:
  AdditiveProducts(const AttentionBlock& block, const AttentionScratch& scratch)
      : VectorProducts(block, scratch), weights_(block.score_weights), scratch_(scratch) {}

  template <int kVectors>
  void Score(const KeyBlock& block, Floats (&maxima)[kVectors]) const {
    const FloatTag d;
    for (Floats& maximum : maxima) maximum = hn::Set(d, -std::numeric_limits<float>::infinity());
    for (int64_t key = 0; key < block.count; ++key) {
      const float* of_key = block.keys.row(key);
      Floats sums[kVectors];
      for (Floats& sum : sums) sum = hn::Zero(d);
      const float* queries = scratch_.queries;
      for (int64_t j = 0; j < block.keys.cols; ++j, queries += Width<kVectors>()) {
        const Floats weight = hn::Set(d, weights_[j]), part = hn::Set(d, of_key[j]);
        for (int v = 0; v < kVectors; ++v) {
          const Floats x = hn::Add(hn::LoadU(d, queries + v * kLanes), part);
          sums[v] = hn::MulAdd(weight, Tanh(x), sums[v]);
        }
      }
      float* to = scratch_.scores + key * Width<kVectors>();
      for (int v = 0; v < kVectors; ++v) {
        maxima[v] = hn::Max(maxima[v], sums[v]);
        hn::Store(sums[v], d, to + v * kLanes);
      }
    }
  }

 private:
  const float* weights_;
  const AttentionScratch& scratch_;
};

}  // namespace HWY_NAMESPACE
}  // namespace attendant
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
