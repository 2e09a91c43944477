// ScoreTerms: the terms that are added to the scaled scores, and the mask on them; included once per
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

// The terms of a run's scores: biases, distances, relative scores and the mask of a window. Most
// models have none, and then nothing of this is called. Borrows its arguments.
class ScoreTerms {
 public:
  ScoreTerms(const AttentionBlock& block, const AttentionScratch& scratch,
             const VisibleKeys& visible)
      : block_(block),
        scratch_(scratch),
        visible_(visible),
        relative_(block, scratch),
        any_(block.bias || block.distances || block.relative || block.window > 0 ||
             !(block.scale > 0)) {}

  // Whether the scores need more than a positive scale. If so, Apply scales them too.
  bool any() const { return any_; }

  // Takes up a block of keys, of which Apply then gets parts.
  void TakeKeys(int64_t first, int64_t count) { relative_.TakeKeys(first, count); }

  // scores = scores * scale + terms, minus infinity for masked pairs, and the largest of each query.
  template <int kVectors>
  void Apply(const KeyBlock& block, const QueryPanel& panel, Floats (&maxima)[kVectors]) {
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
    PackBias<kVectors>(block_.distances ? block_.distances : block_.bias, block, panel);
    std::optional<WindowMask<kVectors>> mask;
    if (!visible_.all()) mask.emplace(block_, visible_, panel, block.first);
    for (Floats& maximum : maxima) {
      maximum = hn::Set(d, -std::numeric_limits<float>::infinity());
    }
    for (int64_t key = 0; key < block.count; ++key) {
      if (mask) mask->MoveTo(block.first + key);
      for (int v = 0; v < kVectors; ++v) {
        const int64_t i = key * Width<kVectors>() + v * kLanes;
        const Floats bias = hn::Load(d, scratch_.bias + i);
        Floats score = hn::MulAdd(hn::Load(d, scratch_.scores + i), scale, bias);
        if (mask) score = mask->Apply(v, score);
        maxima[v] = hn::Max(maxima[v], score);
        hn::Store(score, d, scratch_.scores + i);
      }
    }
  }

 private:
  // [keys, queries] like the scores; zeros without a bias.
  template <int kVectors>
  void PackBias(const HeadBias& bias, const KeyBlock& block, const QueryPanel& panel) {
    if (!bias) {
      std::fill_n(scratch_.bias, block.count * Width<kVectors>(), 0.0f);
      return;
    }
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
  const bool any_;
};

}  // namespace HWY_NAMESPACE
}  // namespace attendant
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
