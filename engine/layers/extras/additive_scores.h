// AdditiveScores: the weights w of additive attention, whose scores are w . tanh(q + k): Bahdanau
// et al. 2015, section A.1.2.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "engine/base/aligned_buffer.h"
#include "engine/layers/extras/attention_extra.h"

namespace attendant {

class AdditiveScores : public AttentionExtra {
 public:
  // Returns the errors of `loader`.
  static absl::StatusOr<AdditiveScores> Load(const std::string& prefix, const LayerShape& shape,
                                             WeightLoader& loader);

  void AddTo(AttentionInput& input, const LayerRun& /*run*/) const override {
    input.score_weights = weights_.data();
  }
  int64_t bytes() const override { return weights_.bytes(); }

 private:
  explicit AdditiveScores(SharedBuffer<float> weights) : weights_(std::move(weights)) {}

  SharedBuffer<float> weights_;  // [H Dk]
};

}  // namespace attendant
