// ScoreTerms: the terms that are added to the scaled scores, and the mask. Included once per
// instruction set.

#if defined(ATTENDANT_ENGINE_KERNELS_SCORE_TERMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTENDANT_ENGINE_KERNELS_SCORE_TERMS_INL_H_
#undef ATTENDANT_ENGINE_KERNELS_SCORE_TERMS_INL_H_
#else
#define ATTENDANT_ENGINE_KERNELS_SCORE_TERMS_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "absl/types/span.h"
#include "engine/kernels/attention/attention_block.h"
#include "engine/kernels/attention/micro_kernel-inl.h"
#include "engine/kernels/attention/packing-inl.h"
#include "engine/kernels/attention/vector_products-inl.h"
#include "engine/kernels/attention/visible_keys.h"
#include "engine/kernels/simd-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace attendant {
namespace HWY_NAMESPACE {

// The relative scores of disentangled attention. Scores a panel of tokens at a time against the
// rows of all distances that can occur, then gathers the score of each query and key. Computes in
// float32, whatever the number format of attention.
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

// Masks the scores of a panel of queries, one key after the other, in a sequence in which some
// queries do not see all keys. Block indices are compared as float32, which is exact below 2^24.
// The arguments must outlive it.
template <int kVectors>
class WindowMask {
 public:
  // `first_key` is the first key that MoveTo will be called for.
  WindowMask(const AttentionBlock& block, const VisibleKeys& keys, const QueryPanel& panel,
             int64_t first_key)
      : keys_(keys), causal_(block.causal) {
    const FloatTag d;
    HWY_ALIGN float query_blocks[Width<kVectors>()], repeats[Width<kVectors>()];
    const float repeat = std::log1p(static_cast<float>(block.pattern.first_repeats));
    const int64_t first_key_block = keys.BlockOfKey(first_key);
    for (int64_t i = 0; i < Width<kVectors>(); ++i) {
      const int64_t query = block.first_query + panel.first + std::min(i, panel.count - 1);
      const int64_t query_block = keys.BlockOfQuery(query);
      const bool is_global = keys.IsGlobal(query_block);
      query_blocks[i] = static_cast<float>(query_block);
      const bool has_window = block.window > 0 && !is_global;
      widths_[i] = has_window ? static_cast<float>(block.window) : kInfinity;
      repeats[i] = is_global ? 0.0f : repeat;
      listed_[i] =
          block.pattern.listed.Between({query_block, first_key_block}, {query_block + 1, 0});
      any_listed_ = any_listed_ || !listed_[i].empty();
    }
    for (int v = 0; v < kVectors; ++v) {
      query_blocks_[v] = hn::Load(d, query_blocks + v * kLanes);
      windows_[v] = hn::LoadU(d, widths_ + v * kLanes);
      repeats_[v] = hn::Load(d, repeats + v * kLanes);
    }
  }

  // Sets the current key. Keys must be ascending.
  void MoveTo(int64_t key) {
    const int64_t key_block = keys_.BlockOfKey(key);
    if (key_block == key_block_) return;
    key_block_ = key_block;
    is_global_ = keys_.IsGlobal(key_block);
    if (any_listed_) OpenListed();
  }

  // Returns the scores of the queries in vector v and the current key: minus infinity if masked.
  Floats Apply(int v, Floats score) const {
    const FloatTag d;
    if (key_block_ == 0) score = hn::Add(score, repeats_[v]);
    if (is_global_) return score;
    const Floats distance = hn::Sub(hn::Set(d, static_cast<float>(key_block_)), query_blocks_[v]);
    // A key after the query is always masked.
    const Floats reach =
        causal_ ? hn::IfThenElse(hn::Gt(distance, hn::Zero(d)), hn::Set(d, -1.0f), windows_[v])
                : windows_[v];
    return hn::IfThenElse(hn::Gt(hn::Abs(distance), reach), hn::Set(d, -kInfinity), score);
  }

 private:
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();

  // Queries that list the key's block see it at any distance.
  void OpenListed() {
    HWY_ALIGN float windows[Width<kVectors>()];
    for (int64_t i = 0; i < Width<kVectors>(); ++i) {
      absl::Span<const BlockPair>& listed = listed_[i];
      while (!listed.empty() && listed.front().key < key_block_) listed.remove_prefix(1);
      const bool lists = !listed.empty() && listed.front().key == key_block_;
      windows[i] = lists ? kInfinity : widths_[i];
    }
    for (int v = 0; v < kVectors; ++v) windows_[v] = hn::Load(FloatTag(), windows + v * kLanes);
  }

  const VisibleKeys& keys_;
  const bool causal_;
  Floats query_blocks_[kVectors];  // block indices of the queries
  Floats windows_[kVectors];       // infinite if the query is global, or lists the key's block
  Floats repeats_[kVectors];       // added to scores of block 0, to count its keys more than once
  int64_t key_block_ = -1;         // block index of the current key
  bool is_global_ = false;         // whether that block is global
  // The window of each query regardless of listed blocks, and its listed blocks from key_block_ on.
  float widths_[Width<kVectors>()];
  absl::Span<const BlockPair> listed_[Width<kVectors>()];
  bool any_listed_ = false;
};

// The terms of a run's scores: biases, relative scores, and the mask by causality or a window. Not
// called in most encoders, which have no terms. The arguments must outlive it.
class ScoreTerms {
 public:
  ScoreTerms(const AttentionBlock& block, const AttentionScratch& scratch,
             const VisibleKeys& visible)
      : block_(block),
        scratch_(scratch),
        visible_(visible),
        relative_(block, scratch),
        has_bias_(block.bias || block.distances),
        scales_(has_bias_ || block.relative || !(block.scale > 0) ||
                (block.window > 0 && !block.causal)) {}

  // Whether the scores need more than a positive scale.
  bool any() const { return scales_ || !visible_.all(); }
  // Whether Apply scales them.
  bool scales() const { return scales_; }

  // Begins a block of keys. The blocks passed to Apply must be parts of it.
  void TakeKeys(int64_t first, int64_t count) { relative_.TakeKeys(first, count); }

  // Computes scores = scores * scale + terms, with minus infinity for masked keys, and the maximum
  // of each query. Does not multiply by the scale unless scales().
  template <int kVectors>
  void Apply(const KeyBlock& block, const QueryPanel& panel, Floats (&maxima)[kVectors]) {
    const KeyRange keys = {block.first, block.first + block.count};
    KeyRange plain = visible_.SeenByAll(panel.first, panel.count, keys);
    if (plain.empty()) plain = {keys.begin, keys.begin};
    const bool is_plain = plain.begin == keys.begin && plain.end == keys.end;
    if (!scales_ && is_plain) return;
    if (block_.relative) relative_.template Add<kVectors>(block, panel);
    const FloatTag d;
    Floats scale = hn::Set(d, block_.scale);
    if (block_.bias && block_.distances) {
      PackBias<kVectors>(block_.bias, block, panel);
      for (int64_t i = 0; i < block.count * Width<kVectors>(); i += kLanes) {
        float* at = scratch_.scores + i;
        hn::Store(hn::MulAdd(hn::Load(d, at), scale, hn::Load(d, scratch_.bias + i)), d, at);
      }
      scale = hn::Set(d, 1.0f);
    }
    if (has_bias_) {
      PackBias<kVectors>(block_.distances ? block_.distances : block_.bias, block, panel);
    }
    std::optional<WindowMask<kVectors>> mask;
    if (!is_plain) mask.emplace(block_, visible_, panel, block.first);
    // Scores below the first are masked. If those above it were all below the second, the rounding
    // errors of the exponents would be more than exponentials can hold.
    const Floats masked = hn::Set(d, -2.4e38f), least = hn::Set(d, -1e9f);
    Floats largest[kVectors];
    ForEach<kVectors>(
        [&](int v) HWY_ATTR { largest[v] = hn::Set(d, -std::numeric_limits<float>::infinity()); });
    for (int64_t key = 0; key < block.count; ++key) {
      const int64_t number = block.first + key;
      const bool masks = number < plain.begin || number >= plain.end;
      if (masks) mask->MoveTo(number);
      ForEach<kVectors>([&](int v) HWY_ATTR {
        float* at = scratch_.scores + key * Width<kVectors>() + v * kLanes;
        Floats score = hn::Load(d, at);
        if (has_bias_) {
          score = hn::MulAdd(score, scale, hn::Load(d, scratch_.bias + (at - scratch_.scores)));
          score = hn::IfThenElse(hn::Gt(score, masked), hn::Max(score, least), score);
        } else if (scales_) {
          score = hn::Mul(score, scale);
        }
        if (masks) score = mask->Apply(v, score);
        largest[v] = hn::Max(largest[v], score);
        if (scales_ || masks) hn::Store(score, d, at);
      });
    }
    ForEach<kVectors>([&](int v) HWY_ATTR { maxima[v] = largest[v]; });
  }

 private:
  // Packs the bias as [keys, queries], like the scores.
  template <int kVectors>
  void PackBias(const AttentionBias& bias, const KeyBlock& block, const QueryPanel& panel) {
    const bool dense = bias.key_stride == 1 && block_.key_positions.empty();
    const float* rows[Width<kVectors>()];
    for (int64_t i = 0; i < Width<kVectors>(); ++i) {
      const int64_t query = block_.first_query + panel.first + std::min(i, panel.count - 1);
      rows[i] =
          bias.data + block_.QueryPosition(query) * bias.query_stride + (dense ? block.first : 0);
    }
    if (dense) {
      return PackTransposed<AttentionOperands::kF32, kVectors>(rows, block.count, scratch_.bias);
    }
    float* to = scratch_.bias;
    for (int64_t key = block.first; key < block.first + block.count; ++key) {
      const int64_t offset = block_.KeyPosition(key) * bias.key_stride;
      for (const float* row : rows) *to++ = row[offset];
    }
  }

  const AttentionBlock& block_;
  const AttentionScratch& scratch_;
  const VisibleKeys& visible_;
  RelativeProducts relative_;
  const bool has_bias_;
  const bool scales_;
};

}  // namespace HWY_NAMESPACE
}  // namespace attendant
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
