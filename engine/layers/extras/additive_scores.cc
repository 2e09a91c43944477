#include "engine/layers/extras/additive_scores.h"

#include "engine/base/status_macros.h"

namespace attendant {

absl::StatusOr<AdditiveScores> AdditiveScores::Load(const std::string& prefix,
                                                    const LayerShape& shape, WeightLoader& loader) {
  ASSIGN_OR_RETURN(AlignedBuffer<float> weights,
                   loader.ReadTable(prefix + "score", shape.key_columns()));
  return AdditiveScores(std::move(weights));
}

}  // namespace attendant
