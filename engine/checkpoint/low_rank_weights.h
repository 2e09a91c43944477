// Weights of an opened checkpoint to which products of two small matrices are added: Hu et al. 2021
// (LoRA).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/files/opened_checkpoint.h"

namespace attendant {

// scale * left right, where left is [rows, rank] and right is [rank, columns].
struct LowRankProduct {
  std::string left, right;  // names of the matrices
  int64_t rank = 0;
  float scale = 0;
  int64_t rows = 0, columns = 0;           // of the tensor that it is added to; see OfTensor
  int64_t first_row = 0, weight_rows = 0;  // the rows of the tensor that make the weight
};

// By the canonical names of the weights.
using LowRankProducts = std::map<std::string, LowRankProduct>;

// The shapes of a model's weights, by their canonical names.
using WeightShapes = std::map<std::string, std::vector<int64_t>>;
WeightShapes ShapesOf(const ModelDescription& model);

// Returns the product for each weight that a tensor of the files holds: its rows, or all of them.
// Nothing if the tensor is not a matrix of whole weights, one after the other.
LowRankProducts OfTensor(const CheckpointTensor& tensor, const WeightShapes& shapes,
                         LowRankProduct product);

// Adds the products to the checkpoint's weights as they are read. `factors` has the matrices; null:
// the checkpoint's weights have them.
void AddProducts(const LowRankProducts& products, std::shared_ptr<WeightSource> factors,
                 Checkpoint& checkpoint);

}  // namespace attendant
