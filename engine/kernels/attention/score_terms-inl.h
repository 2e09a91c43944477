// ScoreTerms: the terms that are added to the scaled scores, and the mask. Included once per
// instruction set.

#if defined(ATTENDANT_ENGINE_KERNELS_SCORE_TERMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTENDANT_ENGINE_KERNELS_SCORE_TERMS_INL_H_
#undef ATTENDANT_ENGINE_KERNELS_SCORE_TERMS_INL_H_
#else
#define ATTENDANT_ENGINE_KERNELS_SCORE_TERMS_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "engine/kernels/attention/attention_block.h"
#include "engine/kernels/attention/packing-inl.h"
#include "engine/kernels/attention/relative_products-inl.h"
#include "engine/kernels/attention/vector_products-inl.h"
#include "engine/kernels/attention/visible_keys.h"
#include "engine/kernels/attention/window_mask-inl.h"
#include "engine/kernels/simd-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace attendant {
namespace HWY_NAMESPACE {

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
    ForEach<kVectors>([&](int v) HWY_ATTR {
      largest[v] = hn::Set(d, -std::numeric_limits<float>::infinity());
    });
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
  void PackBias(const HeadBias& bias, const KeyBlock& block, const QueryPanel& panel) {
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
