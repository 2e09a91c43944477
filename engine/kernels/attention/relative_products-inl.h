// The products of disentangled attention. Included once per instruction set.

#if defined(ATTENDANT_ENGINE_KERNELS_RELATIVE_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTENDANT_ENGINE_KERNELS_RELATIVE_PRODUCTS_INL_H_
#undef ATTENDANT_ENGINE_KERNELS_RELATIVE_PRODUCTS_INL_H_
#else
#define ATTENDANT_ENGINE_KERNELS_RELATIVE_PRODUCTS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "engine/kernels/attention/attention_block.h"
#include "engine/kernels/attention/micro_kernel-inl.h"
#include "engine/kernels/attention/packing-inl.h"
#include "engine/kernels/attention/vector_products-inl.h"
#include "engine/kernels/simd-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace attendant {
namespace HWY_NAMESPACE {

// Scores a panel of tokens at a time against the rows of all distances that can occur, then gathers
// the score of each query and key. Computes in float32, whatever the number format of attention.
class RelativeProducts {
 public:
  RelativeProducts(const AttentionBlock& block, const AttentionScratch& scratch)
      : block_(block), relative_(block.relative), scratch_(scratch) {}

  // Scores all keys of a block against the distances to all queries.
  void TakeKeys(int64_t first, int64_t count) {
    if (relative_.queries.data == nullptr) return;
    first_key_ = first;
    const int64_t queries = block_.queries.rows;
    for (int64_t key = 0; key < count; key += kPanel) {
      const int64_t taken = std::min(kPanel, count - key);
      Score<2>(relative_.queries, RowsOf(0, queries, first + key, taken),
               block_.keys.Rows(first + key, taken),
               scratch_.key_positions + key * relative_.rows());
    }
  }

  // Adds the relative scores of the panel's queries and the block's keys to scores. The block must
  // be part of the last one passed to TakeKeys.
  template <int kVectors>
  void Add(const KeyBlock& block, const QueryPanel& panel) const {
    if (relative_.keys.data != nullptr) {
      Score<kVectors>(relative_.keys, RowsOf(panel.first, panel.count, block.first, block.count),
                      block_.queries.Rows(panel.first, panel.count), scratch_.query_positions);
    }
    const FloatTag d;
    const IndexTag di;
    constexpr int32_t kStride = static_cast<int32_t>(Width<kVectors>());
    Indices offsets[kVectors];
    LoadRowOffsets<kVectors>(panel, offsets);
    for (int64_t key = block.first; key < block.first + block.count; ++key) {
      const int64_t in_block = key - first_key_;
      const float* of_key = scratch_.key_positions + in_block / kPanel * kPanel * relative_.rows() +
                            in_block % kPanel;
      const Indices position = hn::Set(di, static_cast<int32_t>(block_.KeyPosition(key)));
      float* scores = scratch_.scores + (key - block.first) * Width<kVectors>();
      for (int v = 0; v < kVectors; ++v, scores += kLanes) {
        const Indices row = hn::GatherIndex(di, relative_.row_of, hn::Sub(offsets[v], position));
        Floats score = hn::Load(d, scores);
        if (relative_.keys.data != nullptr) {
          const Indices lane = hn::Iota(di, static_cast<int32_t>(v * kLanes));
          const Indices at = hn::Add(hn::Mul(row, hn::Set(di, kStride)), lane);
          score = hn::Add(score, hn::GatherIndex(d, scratch_.query_positions, at));
        }
        if (relative_.queries.data != nullptr) {
          const Indices at = hn::Mul(row, hn::Set(di, static_cast<int32_t>(kPanel)));
          score = hn::Add(score, hn::GatherIndex(d, of_key, at));
        }
        hn::Store(score, d, scores);
      }
    }
  }

 private:
  using IndexTag = hn::RebindToSigned<FloatTag>;
  using Indices = hn::Vec<IndexTag>;

  // Returns the range of rows that these queries and keys need. The first and the last of them have
  // the largest distances.
  KeyRange RowsOf(int64_t query, int64_t queries, int64_t key, int64_t keys) const {
    const auto row = [&](int64_t a, int64_t b) -> int64_t {
      return relative_.row_of[relative_.middle + block_.QueryPosition(block_.first_query + a) -
                              block_.KeyPosition(b)];
    };
    return {row(query, key + keys - 1), row(query + queries - 1, key) + 1};
  }

  // Computes the products of the tokens with the rows `wanted` of `positions` into the same rows of
  // `to`, [rows, kVectors vectors].
  template <int kVectors>
  void Score(MatrixView<const float> positions, KeyRange wanted, MatrixView<const float> tokens,
             float* to) const {
    const FloatTag d;
    const float* rows[Width<kVectors>()];
    for (int64_t i = 0; i < Width<kVectors>(); ++i) {
      rows[i] = tokens.row(std::min(i, tokens.rows - 1));
    }
    PackTransposed<AttentionOperands::kF32, kVectors>(rows, tokens.cols, scratch_.tokens);
    to += wanted.begin * Width<kVectors>();
    ForRowTiles(wanted.end - wanted.begin, [&](auto count, int64_t begin) HWY_ATTR {
      constexpr int kRows = decltype(count)::value;
      Tile<kRows, kVectors> sums;
      ZeroTile<kRows, kVectors>(sums);
      MultiplyTile<AttentionOperands::kF32>(
          {positions.row(wanted.begin + begin), positions.stride, 1},
          {scratch_.tokens, Width<kVectors>()}, tokens.cols, sums);
      ForTile<kRows, kVectors>([&](int r, int v) HWY_ATTR {
        hn::Store(sums[r][v], d, to + (begin + r) * Width<kVectors>() + v * kLanes);
      });
    });
  }

  // Loads the offset into row_of of each query of the panel. Subtracting a key's position gives the
  // index of its row.
  template <int kVectors>
  void LoadRowOffsets(const QueryPanel& panel, Indices (&offsets)[kVectors]) const {
    HWY_ALIGN int32_t values[Width<kVectors>()];
    for (int64_t i = 0; i < Width<kVectors>(); ++i) {
      const int64_t query = block_.first_query + panel.first + std::min(i, panel.count - 1);
      values[i] = static_cast<int32_t>(relative_.middle + block_.QueryPosition(query));
    }
    for (int v = 0; v < kVectors; ++v) offsets[v] = hn::Load(IndexTag(), values + v * kLanes);
  }

  const AttentionBlock& block_;
  const RelativeScores& relative_;
  const AttentionScratch& scratch_;
  int64_t first_key_ = 0;  // of the last block passed to TakeKeys
};

}  // namespace HWY_NAMESPACE
}  // namespace attendant
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
