// The kinds of arithmetic that a layer can be made of: what descriptions name and kernels compute.
#pragma once

#include <cstdint>

namespace attendant {

// How queries, keys and values make a context.
enum class AttentionKind {
  kSoftmax,       // softmax(Q K^T scale) V: Vaswani et al. 2017
  kAdditive,      // the same with scores w . tanh(q + k) scale: Bahdanau et al. 2015
  kLinear,        // scale Q (K^T V): no softmax; the keys and values are fast weights
  kCausalLinear,  // the same of the keys up to the query alone: Schlag et al. 2021
  kLinformer,     // softmax(Q (E K)^T scale) F V: E and F mix the tokens: Wang et al. 2020
};

// "softmax", "additive", "linear", "causal_linear", "linformer".
const char* Name(AttentionKind kind);

constexpr bool IsLinear(AttentionKind kind) {
  return kind == AttentionKind::kLinear || kind == AttentionKind::kCausalLinear;
}

// Floats of the state of a head of linear attention: [Dk, Dv], rows padded to whole vectors.
int64_t LinearStateSize(int64_t key_width, int64_t value_width);

// True if a query and a key have a score of their own, which can be given a bias or told.
constexpr bool ScoresPairs(AttentionKind kind) {
  return kind == AttentionKind::kSoftmax || kind == AttentionKind::kAdditive;
}

// Formulas as in Hugging Face's ACT2FN. kGelu is exact: x * Phi(x) with erf; kGeluTanh is
// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); kQuickGelu is x * sigmoid(1.702 x).
enum class Activation { kIdentity, kGelu, kGeluTanh, kQuickGelu, kRelu, kSilu, kTanh, kSigmoid };

// "gelu", "gelu_tanh", …
const char* Name(Activation activation);

enum class NormKind {
  kLayer,   // gamma (x - mean) / sqrt(variance + epsilon) + beta, with the biased variance: Ba et
            // al. 2016
  kRms,     // gamma x / sqrt(mean of squares + epsilon) + beta: Zhang and Sennrich 2019
  kAffine,  // gamma x + beta: Sun et al. 2020
};

// "layer", "rms", "affine".
const char* Name(NormKind kind);

// Which elements of a head make a pair.
enum class RotaryPairs {
  kHalves,       // j and j + width / 2
  kInterleaved,  // 2 j and 2 j + 1
};

}  // namespace attendant
