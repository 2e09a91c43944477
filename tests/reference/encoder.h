// The whole encoder in float64, one sequence at a time, from the formulas. The engine is compared
// with it.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/compute_type.h"
#include "engine/model/model_description.h"
#include "engine/model/weight_source.h"

namespace attendant::reference {

// The token ids of a sequence without padding, in positions 0, 1, …
struct TokenSequence {
  std::vector<int32_t> words;
  std::vector<int32_t> positions;
  std::vector<int32_t> token_types;
};

class Encoder {
 public:
  // Reads from `weights` when they are needed, so that a large model is never held in memory in
  // float64; a weight that cannot be read ends the process. The inputs and weights of linear layers
  // are rounded as `type` rounds them (InputOperand and WeightOperand in reference.h), and the
  // operands of attention to bfloat16 if AttendsInBf16. Everything else is float64.
  Encoder(const ModelDescription& description, WeightSource& weights,
          ComputeType type = ComputeType::kF32)
      : model_(description), weights_(weights), type_(type) {}

  // Computes all layers and the exit norm for each sequence [length, E]. `positions` are those of
  // its tokens; empty: 0, 1, …
  std::vector<std::vector<double>> Encode(std::vector<std::vector<double>> sequences,
                                          std::vector<std::vector<int32_t>> positions = {}) const;

  // Returns the embeddings of one sequence, [length, E].
  std::vector<double> Embed(const TokenSequence& ids) const;

 private:
  ModelDescription model_;
  WeightSource& weights_;
  ComputeType type_;
};

}  // namespace attendant::reference
