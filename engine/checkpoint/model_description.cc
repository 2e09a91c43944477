#include "engine/checkpoint/model_description.h"

#include <algorithm>

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
  shape.has_attention_norm = variants[set].has_attention_norm;
  shape.relative_positions.rotary_theta = variants[set].rotary_theta;
  if (!variants[set].has_window) shape.window = 0;
  return shape;
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
  }
  return "unknown";
}

}  // namespace attendant
