#include "engine/model/model_description.h"

#include <algorithm>

#include "absl/algorithm/container.h"

namespace attendant {

const char* Name(NormPlacement placement) {
  switch (placement) {
    case NormPlacement::kPost:
      return "post";
    case NormPlacement::kPre:
      return "pre";
    case NormPlacement::kNone:
      return "none";
  }
  return "unknown";
}

const char* Name(RelativePositions kind) {
  switch (kind) {
    case RelativePositions::kNone:
      return "none";
    case RelativePositions::kBuckets:
      return "buckets";
    case RelativePositions::kAlibi:
      return "alibi";
    case RelativePositions::kRotary:
      return "rotary";
    case RelativePositions::kDisentangled:
      return "disentangled";
  }
  return "unknown";
}

LayerShape ModelDescription::layer_shape(int64_t set) const {
  LayerShape shape = layer;
  if (variants.empty()) return shape;
  const LayerVariant& variant = variants[set];
  shape.norms.has_attention_norm = variant.has_attention_norm;
  shape.relative_positions.rotary_theta = variant.rotary_theta;
  if (!variant.has_window) shape.attention.window = 0;
  if (!variant.has_convolution) shape.extras.convolution = {};
  if (variant.pruned_heads.empty()) return shape;
  for (int64_t head = 0; head < layer.attention.heads; ++head) {
    if (absl::c_binary_search(variant.pruned_heads, head)) continue;
    shape.attention.head_numbers.push_back(head);
  }
  shape.attention.heads = static_cast<int64_t>(shape.attention.head_numbers.size());
  return shape;
}

int64_t ModelDescription::heads_at(int64_t i) const {
  if (variants.empty()) return layer.attention.heads;
  return layer.attention.heads - static_cast<int64_t>(variants[weight_set(i)].pruned_heads.size());
}

int64_t ModelDescription::weight_sets() const {
  return layer_map.empty() ? layers : *std::max_element(layer_map.begin(), layer_map.end()) + 1;
}

const char* Name(PoolingMode mode) {
  switch (mode) {
    case PoolingMode::kFirstToken:
      return "first_token";
    case PoolingMode::kMax:
      return "max";
    case PoolingMode::kMean:
      return "mean";
    case PoolingMode::kMeanSqrtLen:
      return "mean_sqrt_len";
    case PoolingMode::kPositionWeightedMean:
      return "position_weighted_mean";
    case PoolingMode::kLastToken:
      return "last_token";
    case PoolingMode::kFeatureMean:
      return "feature_mean";
  }
  return "unknown";
}

}  // namespace attendant
