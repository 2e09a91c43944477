// The whole encoder in float64, one sequence at a time, from the formulas: what the engine is
// compared with.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/compute_type.h"
#include "engine/model/model_description.h"
#include "engine/model/weight_source.h"

namespace attendant::reference {

// A sequence without padding, in positions 0, 1, …
struct TokenSequence {
  std::vector<int32_t> words;
  std::vector<int32_t> positions;
  std::vector<int32_t> token_types;
};

class Encoder {
 public:
  // `weights` is asked as it is needed, so that a large model is never in memory in float64; a
  // weight that it cannot read ends the process. The inputs and weights of linear layers are
  // rounded as `type` rounds them (InputOperand and WeightOperand in reference.h), the operands
  // of attention to bfloat16 if AttendsInBf16; all else is float64.
  Encoder(const ModelDescription& description, WeightSource& weights,
          ComputeType type = ComputeType::kF32)
      : model_(description), weights_(weights), type_(type) {}

  // All layers and the exit norm, for each sequence [length, E]. `positions` of its tokens, or
  // none: 0, 1, …
  std::vector<std::vector<double>> Encode(std::vector<std::vector<double>> sequences,
                                          std::vector<std::vector<int32_t>> positions = {}) const;

  // One sequence through the embeddings: [length, E].
  std::vector<double> Embed(const TokenSequence& ids) const;

 private:
  ModelDescription model_;
  WeightSource& weights_;
  ComputeType type_;
};

}  // namespace attendant::reference
