#include "engine/layers/extras/load_attention_extra.h"

#include <utility>

#include "engine/layers/extras/additive_scores.h"
#include "engine/layers/extras/linformer_mixing.h"
#include "engine/layers/extras/position_projections.h"

namespace attendant {
namespace {

using Loaded = absl::StatusOr<std::shared_ptr<const AttentionExtra>>;

template <class Extra>
Loaded Share(absl::StatusOr<Extra> extra) {
  if (!extra.ok()) return extra.status();
  return std::make_shared<const Extra>(*std::move(extra));
}

}  // namespace

Loaded LoadAttentionExtra(const std::string& prefix, const LayerShape& shape,
                          const PackedLinear* qkv, const AlignedBuffer<float>& distances,
                          WeightLoader& loader) {
  if (shape.attention.kind == AttentionKind::kAdditive) {
    return Share(AdditiveScores::Load(prefix, shape, loader));
  }
  if (shape.attention.kind == AttentionKind::kLinformer) {
    return Share(LinformerMixing::Load(prefix, shape, loader));
  }
  if (shape.relative_positions.kind == RelativePositions::kDisentangled) {
    return Share(PositionProjections::Load(prefix, shape, *qkv, distances, loader));
  }
  return nullptr;
}

}  // namespace attendant
