#include "engine/layers/extras/linformer_mixing.h"

namespace attendant {

absl::StatusOr<LinformerMixing> LinformerMixing::Load(const std::string& prefix,
                                                      const LayerShape& shape,
                                                      WeightLoader& loader) {
  LinformerMixing mixing(shape.attention.linformer);
  const int64_t elements = mixing.shape_.keys * mixing.shape_.positions;
  absl::StatusOr<AlignedBuffer<float>> keys = loader.ReadTable(prefix + "key_mixing", elements);
  if (!keys.ok()) return keys.status();
  absl::StatusOr<AlignedBuffer<float>> values = loader.ReadTable(prefix + "value_mixing", elements);
  if (!values.ok()) return values.status();
  mixing.keys_ = *std::move(keys);
  mixing.values_ = *std::move(values);
  return mixing;
}

void LinformerMixing::AddTo(AttentionInput& input, const LayerRun& /*run*/) const {
  const auto [rows, positions] = shape_;
  input.key_mixing = {keys_.data(), rows, positions, positions};
  input.value_mixing = {values_.data(), rows, positions, positions};
}

}  // namespace attendant
