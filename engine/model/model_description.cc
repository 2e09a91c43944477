#include "engine/model/model_description.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "engine/base/names.h"

namespace attendant {
namespace {

constexpr Named<NormPlacement> kNormPlacements[] = {{"post", NormPlacement::kPost},
                                                    {"pre", NormPlacement::kPre},
                                                    {"sandwich", NormPlacement::kSandwich},
                                                    {"none", NormPlacement::kNone}};

constexpr Named<RelativePositions> kRelativePositions[] = {
    {"none", RelativePositions::kNone},
    {"buckets", RelativePositions::kBuckets},
    {"alibi", RelativePositions::kAlibi},
    {"rotary", RelativePositions::kRotary},
    {"disentangled", RelativePositions::kDisentangled}};

constexpr Named<PoolingMode> kPoolingModes[] = {
    {"first_token", PoolingMode::kFirstToken},
    {"max", PoolingMode::kMax},
    {"mean", PoolingMode::kMean},
    {"mean_sqrt_len", PoolingMode::kMeanSqrtLen},
    {"position_weighted_mean", PoolingMode::kPositionWeightedMean},
    {"last_token", PoolingMode::kLastToken},
    {"feature_mean", PoolingMode::kFeatureMean}};

}  // namespace

const char* Name(NormPlacement placement) { return NameIn(kNormPlacements, placement); }

const char* Name(RelativePositions kind) { return NameIn(kRelativePositions, kind); }

LayerShape ModelDescription::layer_shape(int64_t set) const {
  LayerShape shape = layer;
  if (variants.empty()) return shape;
  const LayerVariant& variant = variants[set];
  shape.norms.has_attention_norm = variant.has_attention_norm;
  shape.relative_positions.rotary = variant.rotary;
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

const char* Name(PoolingMode mode) { return NameIn(kPoolingModes, mode); }

}  // namespace attendant
