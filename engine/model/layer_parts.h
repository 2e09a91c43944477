// The parts of a model, each listed once. The names and shapes of its weights, its memory and its
// cost are derived from its entry.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/checked_size.h"
#include "engine/base/data_type.h"
#include "engine/model/model_description.h"

namespace attendant {

enum class PartKind {
  kLinear,  // packed for matrix products: weight [out, in] and bias [out]; only the bias if `in` is
            // 0
  kDense,   // a linear layer of a head, or a router: always packed for float32
  kFolded,  // a linear layer that is multiplied into a table at load time: keys or queries of
            // relative positions, or of attention pooling
  kScale,   // [out], multiplied into a linear layer and its bias
  kNorm,    // weight [out] and bias [out]
  kVector,  // [out]
  kTable,   // [out, in]
};

struct ModelPart {
  PartKind kind = PartKind::kTable;
  std::string name;  // of the tensor, or of two tensors "<name>.weight" and "<name>.bias"
  CheckedSize out;
  CheckedSize in = 1;
  std::string stage = {};  // the StageCost that includes its products; may be empty
  // The packed linear layer that contains the part, and its first row there. Only for kLinear and
  // kScale.
  std::string linear = {};
  CheckedSize first_row = 0;
  bool has_bias = true;       // only for parts with two tensors
  bool per_sequence = false;  // applied to pooled vectors instead of tokens
  // For a convolution, whose weight is [groups out, in / taps, taps]; `out` and `in` are those of
  // one group. taps is 0 if the part is not a convolution.
  int64_t groups = 1;
  int64_t taps = 0;
  DataType type = DataType::kFloat32;  // of a table in memory
};

// Whether two consecutive linear parts are packed as one layer: they belong to the same linear
// layer and read the same input.
bool ArePackedAsOne(const ModelPart& part, const ModelPart& next);

// The functions below return parts in the order in which loading reads them. Names of a layer's
// parts do not include "layer.<weight set>.".

// The linear layers that project queries, keys and values. Their outputs side by side have the
// columns that LayerShape describes.
std::vector<ModelPart> InputProjections(const LayerShape& shape);

// The number of columns of a layer's fused input projection: H Dk + K (Dk + Dv), or fewer if
// queries, keys or values share columns.
CheckedSize InputProjectionWidth(const LayerShape& layer);

// The attention of a layer, without the norms around it.
std::vector<ModelPart> ListAttentionParts(const LayerShape& shape);

// A whole layer.
std::vector<ModelPart> ListParts(const LayerShape& shape);

// The parts before the layers: embeddings, patch embedding and relative positions.
std::vector<ModelPart> ListPartsBefore(const ModelDescription& model);

// The parts after the layers: final norm and heads.
std::vector<ModelPart> ListPartsAfter(const ModelDescription& model);

// All parts of a model: before the layers, of all weight sets, and after the layers.
std::vector<ModelPart> ListParts(const ModelDescription& model);

}  // namespace attendant
