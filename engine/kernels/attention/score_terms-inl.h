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
#include "engine/kernels/attention/packing-inl.h"
#include "engine/kernels/attention/relative_products-inl.h"
#include "engine/kernels/attention/vector_products-inl.h"
#include "engine/kernels/attention/visible_keys.h"
#include "engine/kernels/simd-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace attendant {
namespace HWY_NAMESPACE {

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
