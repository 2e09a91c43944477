// The products of additive attention. Included once per instruction set.

#if defined(ATTENDANT_ENGINE_KERNELS_ADDITIVE_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTENDANT_ENGINE_KERNELS_ADDITIVE_PRODUCTS_INL_H_
#undef ATTENDANT_ENGINE_KERNELS_ADDITIVE_PRODUCTS_INL_H_
#else
#define ATTENDANT_ENGINE_KERNELS_ADDITIVE_PRODUCTS_INL_H_
#endif

#include <cstdint>
#include <limits>

#include "engine/kernels/attention/attention_block.h"
#include "engine/kernels/attention/vector_products-inl.h"
#include "engine/kernels/simd-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace attendant {
namespace HWY_NAMESPACE {

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
