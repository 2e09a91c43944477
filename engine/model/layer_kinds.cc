#include "engine/model/layer_kinds.h"

#include "engine/base/names.h"
#include "engine/base/rounding.h"

namespace attendant {
namespace {

constexpr Named<AttentionKind> kAttentionKinds[] = {{"softmax", AttentionKind::kSoftmax},
                                                    {"additive", AttentionKind::kAdditive},
                                                    {"linear", AttentionKind::kLinear},
                                                    {"causal_linear", AttentionKind::kCausalLinear},
                                                    {"linformer", AttentionKind::kLinformer}};

constexpr Named<Activation> kActivations[] = {
    {"identity", Activation::kIdentity},  {"gelu", Activation::kGelu},
    {"gelu_tanh", Activation::kGeluTanh}, {"quick_gelu", Activation::kQuickGelu},
    {"relu", Activation::kRelu},          {"silu", Activation::kSilu},
    {"tanh", Activation::kTanh},          {"sigmoid", Activation::kSigmoid}};

constexpr Named<NormKind> kNormKinds[] = {{"layer", NormKind::kLayer},
                                          {"rms", NormKind::kRms},
                                          {"rms_plus_one", NormKind::kRmsPlusOne},
                                          {"affine", NormKind::kAffine}};

constexpr Named<QueryKeyNorms> kQueryKeyNorms[] = {{"none", QueryKeyNorms::kNone},
                                                   {"all_heads", QueryKeyNorms::kAllHeads},
                                                   {"each_head", QueryKeyNorms::kEachHead}};

}  // namespace

const char* Name(AttentionKind kind) { return NameIn(kAttentionKinds, kind); }

int64_t LinearStateSize(int64_t key_width, int64_t value_width) {
  constexpr int64_t kWidestVector = 16;
  return key_width * RoundUp(value_width, kWidestVector);
}

const char* Name(Activation activation) { return NameIn(kActivations, activation); }

const char* Name(NormKind kind) { return NameIn(kNormKinds, kind); }

const char* Name(QueryKeyNorms norms) { return NameIn(kQueryKeyNorms, norms); }

}  // namespace attendant
