#include "engine/layers/extras/linformer_mixing.h"

#include "engine/base/status_macros.h"

namespace attendant {

absl::StatusOr<LinformerMixing> LinformerMixing::Load(const std::string& prefix,
                                                      const LayerShape& shape,
                                                      WeightLoader& loader) {
  LinformerMixing mixing(shape.attention.linformer);
  const int64_t elements = mixing.shape_.keys * mixing.shape_.positions;
  ASSIGN_OR_RETURN(AlignedBuffer<float> keys, loader.ReadTable(prefix + "key_mixing", elements));
  ASSIGN_OR_RETURN(AlignedBuffer<float> values,
                   loader.ReadTable(prefix + "value_mixing", elements));
  mixing.keys_ = std::move(keys);
  mixing.values_ = std::move(values);
  return mixing;
}

void LinformerMixing::AddTo(AttentionInput& input, const LayerRun& /*run*/) const {
  const auto [rows, positions] = shape_;
  input.key_mixing = {keys_.data(), rows, positions, positions};
  input.value_mixing = {values_.data(), rows, positions, positions};
}

}  // namespace attendant
