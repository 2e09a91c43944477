// WindowMask: masks scores by causality, a window and a pattern. Included once per instruction set.

#if defined(ATTENDANT_ENGINE_KERNELS_WINDOW_MASK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTENDANT_ENGINE_KERNELS_WINDOW_MASK_INL_H_
#undef ATTENDANT_ENGINE_KERNELS_WINDOW_MASK_INL_H_
#else
#define ATTENDANT_ENGINE_KERNELS_WINDOW_MASK_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/types/span.h"
#include "engine/kernels/attention/attention_block.h"
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

}  // namespace HWY_NAMESPACE
}  // namespace attendant
HWY_AFTER_NAMESPACE();

#endif  // ATTENDANT_ENGINE_KERNELS_WINDOW_MASK_INL_H_
