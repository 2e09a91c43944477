#include "engine/model/layer_kinds.h"

#include "engine/base/rounding.h"

namespace attendant {

const char* Name(AttentionKind kind) {
  switch (kind) {
    case AttentionKind::kSoftmax:
      return "softmax";
    case AttentionKind::kAdditive:
      return "additive";
    case AttentionKind::kLinear:
      return "linear";
    case AttentionKind::kCausalLinear:
      return "causal_linear";
    case AttentionKind::kLinformer:
      return "linformer";
  }
  return "unknown";
}

int64_t LinearStateSize(int64_t key_width, int64_t value_width) {
  constexpr int64_t kWidestVector = 16;
  return key_width * RoundUp(value_width, kWidestVector);
}

const char* Name(Activation activation) {
  switch (activation) {
    case Activation::kIdentity:
      return "identity";
    case Activation::kGelu:
      return "gelu";
    case Activation::kGeluTanh:
      return "gelu_tanh";
    case Activation::kQuickGelu:
      return "quick_gelu";
    case Activation::kRelu:
      return "relu";
    case Activation::kSilu:
      return "silu";
    case Activation::kTanh:
      return "tanh";
    case Activation::kSigmoid:
      return "sigmoid";
  }
  return "unknown";
}

const char* Name(NormKind kind) {
  switch (kind) {
    case NormKind::kLayer:
      return "layer";
    case NormKind::kRms:
      return "rms";
    case NormKind::kAffine:
      return "affine";
  }
  return "unknown";
}

}  // namespace attendant
