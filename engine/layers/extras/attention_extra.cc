#include "engine/layers/extras/attention_extra.h"

#include <utility>

#include "engine/base/status_macros.h"
#include "engine/layers/extras/position_projections.h"

namespace attendant {
namespace {

using Loaded = absl::StatusOr<std::shared_ptr<const AttentionExtra>>;

// The weights w of additive attention, whose scores are w . tanh(q + k): Bahdanau et al. 2015,
// section A.1.2.
class AdditiveScores : public AttentionExtra {
 public:
  explicit AdditiveScores(SharedBuffer<float> weights) : weights_(std::move(weights)) {}

  void AddTo(AttentionInput& input, const LayerRun& /*run*/) const override {
    input.score_weights = weights_.data();
  }

 private:
  const SharedBuffer<float> weights_;  // [H Dk]
};

// The matrices that project the keys and the values of a sequence to k rows: Wang et al. 2020
// (Linformer), section 4.
class LinformerMixing : public AttentionExtra {
 public:
  LinformerMixing(const LinformerShape& shape, SharedBuffer<float> keys, SharedBuffer<float> values)
      : shape_(shape), keys_(std::move(keys)), values_(std::move(values)) {}

  void AddTo(AttentionInput& input, const LayerRun& /*run*/) const override {
    const auto [rows, positions] = shape_;
    input.key_mixing = {keys_.data(), rows, positions, positions};
    input.value_mixing = {values_.data(), rows, positions, positions};
  }

 private:
  const LinformerShape shape_;
  const SharedBuffer<float> keys_;    // [k, positions]
  const SharedBuffer<float> values_;  // [k, positions]
};

}  // namespace

Loaded LoadAttentionExtra(const std::string& prefix, const LayerShape& shape,
                          const PackedLinear* qkv, const AlignedBuffer<float>& distances,
                          WeightLoader& loader) {
  if (shape.attention.kind == AttentionKind::kAdditive) {
    ASSIGN_OR_RETURN(AlignedBuffer<float> weights,
                     loader.ReadTable(prefix + "score", shape.key_columns()));
    return std::make_shared<const AdditiveScores>(loader.Keep(std::move(weights)));
  }
  if (shape.attention.kind == AttentionKind::kLinformer) {
    const LinformerShape& linformer = shape.attention.linformer;
    const int64_t elements = linformer.keys * linformer.positions;
    ASSIGN_OR_RETURN(AlignedBuffer<float> keys, loader.ReadTable(prefix + "key_mixing", elements));
    ASSIGN_OR_RETURN(AlignedBuffer<float> values,
                     loader.ReadTable(prefix + "value_mixing", elements));
    return std::make_shared<const LinformerMixing>(linformer, loader.Keep(std::move(keys)),
                                                   loader.Keep(std::move(values)));
  }
  if (shape.relative_positions.kind == RelativePositions::kDisentangled) {
    ASSIGN_OR_RETURN(PositionProjections projections,
                     PositionProjections::Load(prefix, shape, *qkv, distances, loader));
    return std::make_shared<const PositionProjections>(std::move(projections));
  }
  return nullptr;
}

}  // namespace attendant
