#include "engine/model/load_plan.h"

#include <algorithm>
#include <vector>

#include "engine/model/layer_parts.h"

namespace attendant {
namespace {

// oneDNN's blocked layouts round the dimensions of a weight, or of a panel of its columns, up to a
// multiple of at most this.
constexpr int64_t kWeightBlock = 64;
constexpr int64_t kPanelBlock = 192;
// Per column, in addition to the weight: its bias, its scale and three sums of oneDNN.
constexpr int64_t kColumnBytes = 5 * 4;

// Bytes of an element of a linear layer's weight, which is read in elements of `type`.
int64_t WeightWidth(const ComputeMode& mode, DataType type) {
  if (mode.type != ComputeType::kF32 || mode.gemm == Gemm::kOneDnn) return InputElementBytes(mode);
  switch (mode.weights) {
    case WeightType::kAuto:
      return ByteWidth(type);
    case WeightType::kF32:
      return sizeof(float);
    case WeightType::kBf16:
    case WeightType::kF16:
      return 2;
  }
  return sizeof(float);
}

// The bytes of all packed weights, and of the largest weight that is packed from a copy. Tables are
// read in place.
struct Footprint {
  Footprint(const ModelDescription& model, const ComputeMode& mode)
      : weight_width(WeightWidth(mode, model.linear_type)) {}

  // The parts of a linear layer are adjacent.
  void Add(const std::vector<ModelPart>& parts) {
    for (size_t i = 0; i < parts.size(); ++i) {
      ModelPart part = parts[i];
      while (i + 1 < parts.size() && ArePackedAsOne(part, parts[i + 1])) {
        part.out = part.out + parts[++i].out;
      }
      Add(part);
    }
  }
  void Add(const ModelPart& part) {
    switch (part.kind) {
      case PartKind::kLinear:
        return AddLinear(part.out, part.in, part.groups, weight_width);
      case PartKind::kDense:
        return AddLinear(part.out, part.in, part.groups, sizeof(float));
      case PartKind::kNorm:
        return AddFloats(part.out + part.out);
      case PartKind::kVector:
        return AddFloats(part.out);
      case PartKind::kTable:
        return AddBytes(part.out * part.in * ByteWidth(part.type));
      case PartKind::kScale:   // goes into a linear layer
      case PartKind::kFolded:  // leaves what AddDistances and AddAttentionPooling count
        return;
    }
  }
  void AddLinear(CheckedSize out, CheckedSize in, CheckedSize groups, CheckedSize width) {
    const CheckedSize columns = out.RoundedUpTo(kPanelBlock);
    kept =
        kept + (columns * in.RoundedUpTo(kWeightBlock) * width + columns * kColumnBytes) * groups;
    largest = Larger(largest, (out * in + out) * groups * kFloat);
  }
  void AddFloats(CheckedSize count) { AddBytes(count * kFloat); }
  void AddBytes(CheckedSize bytes) { kept = kept + bytes; }

  static constexpr int64_t kFloat = sizeof(float);
  CheckedSize weight_width;  // bytes of an element of a packed weight
  CheckedSize kept;
  CheckedSize largest;
  // The largest weight that the reader may hold in addition: weights of layers, from which it
  // removes heads or whose shared columns it unrolls, and sinusoids.
  CheckedSize largest_in_reader;
};

// Adds the projected relative positions, and the memory of projecting them while loading.
void AddDistances(const LayerShape& layer, Footprint& sum) {
  const RelativePositionShape& relative = layer.relative_positions;
  if (relative.kind != RelativePositions::kDisentangled) return;
  const CheckedSize width = CheckedSize(layer.attention.heads) * layer.attention.key_width;
  const CheckedSize rows = CheckedSize(2) * std::max(relative.buckets, relative.max_distance);
  if (relative.scores_queries) sum.AddFloats(rows * width);
  if (relative.scores_keys) sum.AddFloats(rows * width);
  sum.largest =
      Larger(sum.largest,
             (width * layer.hidden_size + rows * InputProjectionWidth(layer)) * Footprint::kFloat);
}

// Adds the key projection with the query folded in.
void AddAttentionPooling(const ModelDescription& model, Footprint& sum) {
  if (!model.pooling || !model.pooling->attends()) return;
  sum.AddFloats(CheckedSize(model.layer.attention.heads) * model.layer.hidden_size);
}

void AddLayer(const LayerShape& layer, Footprint& sum) {
  sum.Add(ListParts(layer));
  AddDistances(layer, sum);
}

Footprint OfModel(const ModelDescription& model, const ComputeMode& mode) {
  Footprint sum(model, mode);
  if (model.layer_shapes.empty()) {
    AddLayer(model.layer, sum);
    sum.kept = sum.kept * model.weight_sets();
  } else {
    for (const LayerShape& layer : model.layer_shapes) AddLayer(layer, sum);
  }
  sum.largest_in_reader = sum.largest;
  if (model.patch_embedding) {
    sum.largest_in_reader =
        Larger(sum.largest_in_reader, CheckedSize(model.patch_embedding->positions) *
                                          model.layer.hidden_size * Footprint::kFloat);
  }
  sum.Add(ListPartsBefore(model));
  sum.Add(ListPartsAfter(model));
  AddAttentionPooling(model, sum);
  return sum;
}

}  // namespace

CheckedSize PackedBytes(const ModelDescription& model, const ComputeMode& mode) {
  return OfModel(model, mode).kept;
}

CheckedSize LoadBytes(const ModelDescription& model, const ComputeMode& mode) {
  const Footprint sum = OfModel(model, mode);
  return sum.kept + sum.largest + sum.largest_in_reader;
}

CheckedSize PrunedAttentionBytes(const ModelDescription& model, const ComputeMode& mode) {
  Footprint sum(model, mode);
  for (const LayerShape& layer : model.layer_shapes) {
    if (layer.attention.heads < model.layer.attention.heads) sum.Add(ListAttentionParts(layer));
  }
  return sum.kept + sum.largest + sum.largest;
}

}  // namespace attendant
