// How queries, keys and values make a context.
#pragma once

namespace attendant {

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

// True if a query and a key have a score of their own, which can be given a bias or told.
constexpr bool ScoresPairs(AttentionKind kind) {
  return kind == AttentionKind::kSoftmax || kind == AttentionKind::kAdditive;
}

}  // namespace attendant
