// The kinds of attention, activations, norms and rotary positions. Descriptions name them, and
// kernels compute them.
#pragma once

#include <cstdint>

#include "engine/base/names.h"
#include "engine/base/rounding.h"

namespace attendant {

// The formula of the context for queries Q, keys K and values V.
enum class AttentionKind {
  kSoftmax,       // softmax(Q K^T scale) V: Vaswani et al. 2017
  kAdditive,      // softmax of the scores w . tanh(q + k) scale: Bahdanau et al. 2015
  kLinear,        // scale Q (K^T V), without softmax; keys and values are fast weights
  kCausalLinear,  // kLinear over the keys up to the query: Schlag et al. 2021
  kLinformer,     // softmax(Q (E K)^T scale) F V; E and F mix the tokens: Wang et al. 2020
};

inline constexpr Named<AttentionKind> kAttentionKindNames[] = {
    {"softmax", AttentionKind::kSoftmax},
    {"additive", AttentionKind::kAdditive},
    {"linear", AttentionKind::kLinear},
    {"causal_linear", AttentionKind::kCausalLinear},
    {"linformer", AttentionKind::kLinformer}};

constexpr const char* Name(AttentionKind kind) { return NameIn(kAttentionKindNames, kind); }

constexpr bool IsLinear(AttentionKind kind) {
  return kind == AttentionKind::kLinear || kind == AttentionKind::kCausalLinear;
}

// Returns the number of floats in the state of one head of linear attention: a matrix [Dk, Dv]
// whose rows are padded to whole SIMD vectors.
constexpr int64_t LinearStateSize(int64_t key_width, int64_t value_width) {
  constexpr int64_t kWidestVector = 16;
  return key_width * RoundUp(value_width, kWidestVector);
}

// Whether each query and key have a score. Only then can a bias be added to it and its probability
// be returned.
constexpr bool ScoresPairs(AttentionKind kind) {
  return kind == AttentionKind::kSoftmax || kind == AttentionKind::kAdditive;
}

// Activation functions with the formulas of Hugging Face's ACT2FN. kGelu is exact: x * Phi(x) with
// erf; kGeluTanh is 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); kQuickGelu is x *
// sigmoid(1.702 x).
enum class Activation { kIdentity, kGelu, kGeluTanh, kQuickGelu, kRelu, kSilu, kTanh, kSigmoid };

inline constexpr Named<Activation> kActivationNames[] = {
    {"identity", Activation::kIdentity},  {"gelu", Activation::kGelu},
    {"gelu_tanh", Activation::kGeluTanh}, {"quick_gelu", Activation::kQuickGelu},
    {"relu", Activation::kRelu},          {"silu", Activation::kSilu},
    {"tanh", Activation::kTanh},          {"sigmoid", Activation::kSigmoid}};

constexpr const char* Name(Activation activation) { return NameIn(kActivationNames, activation); }

// The formula of a norm over the columns of a row x, with learned vectors gamma and beta.
enum class NormKind {
  kLayer,       // gamma (x - mean) / sqrt(biased variance + epsilon) + beta: Ba et al. 2016
  kRms,         // gamma x / sqrt(mean of squares + epsilon) + beta: Zhang and Sennrich 2019
  kRmsPlusOne,  // kRms with 1 + gamma instead of gamma (Gemma)
  kAffine,      // gamma x + beta: Sun et al. 2020
};

inline constexpr Named<NormKind> kNormKindNames[] = {{"layer", NormKind::kLayer},
                                                     {"rms", NormKind::kRms},
                                                     {"rms_plus_one", NormKind::kRmsPlusOne},
                                                     {"affine", NormKind::kAffine}};

constexpr const char* Name(NormKind kind) { return NameIn(kNormKindNames, kind); }

// The norms that are applied to queries and to keys before the scores.
enum class QueryKeyNorms {
  kNone,
  kAllHeads,  // over the columns of all heads
  kEachHead,  // over the columns of each head, with the same weights for all heads
};

inline constexpr Named<QueryKeyNorms> kQueryKeyNormsNames[] = {
    {"none", QueryKeyNorms::kNone},
    {"all_heads", QueryKeyNorms::kAllHeads},
    {"each_head", QueryKeyNorms::kEachHead}};

constexpr const char* Name(QueryKeyNorms norms) { return NameIn(kQueryKeyNormsNames, norms); }

// The elements of a head that rotary positions rotate as a pair.
enum class RotaryPairs {
  kHalves,       // j and j + width / 2
  kInterleaved,  // 2 j and 2 j + 1
};

}  // namespace attendant
