// The parts of a model, each listed once: the names and shapes of its weights, its bytes and its
// cost follow from its entry.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/checked_size.h"
#include "engine/base/data_type.h"
#include "engine/model/model_description.h"

namespace attendant {

enum class PartKind {
  kLinear,  // packed for matrix products: weight [out, in] and bias [out], or the bias alone if
            // `in` is 0
  kDense,   // a linear layer of a head, or a router, packed for float32 whatever the others
            // compute in
  kFolded,  // a linear layer that is multiplied into a table while loading: keys or queries of
            // the table of distances, or of a pooling that attends
  kScale,   // [out], multiplied into a linear layer and its bias
  kNorm,    // weight [out] and bias [out]
  kVector,  // [out]
  kTable,   // [out, in]
};

struct ModelPart {
  PartKind kind = PartKind::kTable;
  std::string name;  // of its tensor; if there are two, they are ".weight" and ".bias" behind it
  CheckedSize out;
  CheckedSize in = 1;
  std::string stage = {};  // the StageCost that its products count to; empty: to none
  // The linear layer that the part goes into, alone or with others, and its first row there; empty
  // for other kinds than kLinear and kScale.
  std::string linear = {};
  CheckedSize first_row = 0;
  bool has_bias = true;       // of a part with two tensors
  bool per_sequence = false;  // its products are of pooled vectors, not of tokens
  // For a convolution, whose weight is [groups out, in / taps, taps]: out and in are those of one
  // group. taps 0: no convolution.
  int64_t groups = 1;
  int64_t taps = 0;
  DataType type = DataType::kFloat32;  // in which a table is kept
};

// True if the rows of two linear parts that follow each other are packed as one layer: they are of
// one linear layer and read the same input.
bool ArePackedAsOne(const ModelPart& part, const ModelPart& next);

// The lists below are in the order in which loading reads the parts. In those of one layer, names
// are without "layer.<weight set>.".

// The linear layers that make queries, keys and values; their outputs side by side are the columns
// that LayerShape speaks of.
std::vector<ModelPart> InputProjections(const LayerShape& shape);

// Columns of the fused projection of a layer's input: H Dk + K (Dk + Dv), less what is shared. Does
// not allocate.
CheckedSize InputProjectionWidth(const LayerShape& layer);

// The attention of a layer, without the norms around it.
std::vector<ModelPart> ListAttentionParts(const LayerShape& shape);

// A whole layer.
std::vector<ModelPart> ListParts(const LayerShape& shape);

// Before the layers: embeddings, patch embedding and relative positions.
std::vector<ModelPart> ListPartsBefore(const ModelDescription& model);

// Behind the layers: exit norm and heads.
std::vector<ModelPart> ListPartsBehind(const ModelDescription& model);

// The parts of all weight sets, between those before and behind.
std::vector<ModelPart> ListParts(const ModelDescription& model);

}  // namespace attendant
