#include "engine/layers/extras/additive_scores.h"

namespace attendant {

absl::StatusOr<AdditiveScores> AdditiveScores::Load(const std::string& prefix,
                                                    const LayerShape& shape, WeightLoader& loader) {
  absl::StatusOr<AlignedBuffer<float>> weights =
      loader.ReadTable(prefix + "score", shape.key_columns());
  if (!weights.ok()) return weights.status();
  return AdditiveScores(*std::move(weights));
}

}  // namespace attendant
