// LinformerMixing: the matrices that project the keys and the values of a sequence to k rows: Wang
// et al. 2020 (Linformer), section 4.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "engine/base/aligned_buffer.h"
#include "engine/layers/extras/attention_extra.h"

namespace attendant {

class LinformerMixing : public AttentionExtra {
 public:
  // Returns the errors of `loader`.
  static absl::StatusOr<LinformerMixing> Load(const std::string& prefix, const LayerShape& shape,
                                              WeightLoader& loader);

  void AddTo(AttentionInput& input, const LayerRun& run) const override;
  int64_t bytes() const override { return keys_.bytes() + values_.bytes(); }

 private:
  explicit LinformerMixing(const LinformerShape& shape) : shape_(shape) {}

  LinformerShape shape_;
  SharedBuffer<float> keys_;    // [k, positions]
  SharedBuffer<float> values_;  // [k, positions]
};

}  // namespace attendant
