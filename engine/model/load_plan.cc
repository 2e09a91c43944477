#include "engine/model/load_plan.h"

#include <algorithm>

#include "engine/model/pruned_heads.h"
#include "engine/model/weight_source.h"

namespace attendant {
namespace {

// oneDNN's blocked layouts round the sides of a weight, or of a panel of its columns, up to at most
// this.
constexpr int64_t kWeightBlock = 64;
constexpr int64_t kPanelBlock = 192;
// Beside a column of the weight: its bias, its scale and three sums of oneDNN's own.
constexpr int64_t kColumnBytes = 5 * 4;

CheckedSize Norm(CheckedSize width) { return width + width; }

// Bytes of everything that is kept, and of the largest tensor that is packed from a copy.
struct Footprint {
  explicit Footprint(const ComputeMode& compute_mode)
      : mode(compute_mode), weight_width(OperandWidth(compute_mode)) {}

  void AddLinear(CheckedSize out, CheckedSize in) {
    const CheckedSize columns = out.RoundedUpTo(kPanelBlock);
    kept = kept + columns * in.RoundedUpTo(kWeightBlock) * weight_width + columns * kColumnBytes;
    largest = Larger(largest, (out * in + out) * kFloat);
  }
  void AddTable(CheckedSize rows, CheckedSize width) {
    AddFloats(rows * width);
    largest = Larger(largest, rows * width * kFloat);
  }
  void AddFloats(CheckedSize count) { kept = kept + count * kFloat; }

  static constexpr int64_t kFloat = sizeof(float);
  ComputeMode mode;
  CheckedSize weight_width;  // bytes of an element of a packed weight
  CheckedSize kept;
  CheckedSize largest;
};

// What projections make of the table of distances; while loading, of any length of a row.
void AddPositions(const LayerShape& layer, Footprint& sum) {
  const RelativePositionShape& relative = layer.relative_positions;
  if (relative.kind != RelativePositions::kDisentangled) return;
  const CheckedSize width = CheckedSize(layer.heads) * layer.key_width;
  const CheckedSize rows = CheckedSize(2) * std::max(relative.buckets, relative.max_distance);
  if (relative.scores_queries) sum.AddFloats(rows * width);
  if (relative.scores_keys) sum.AddFloats(rows * width);
  sum.largest =
      Larger(sum.largest,
             (width * layer.hidden_size + rows * InputProjectionWidth(layer)) * Footprint::kFloat);
}

// Everything that MultiHeadAttention::Load reads.
void AddAttention(const LayerShape& layer, Footprint& sum) {
  const CheckedSize hidden = layer.inner_width(), heads = layer.heads;
  if (layer.needs_cross_kv() || layer.values_from_outside) {
    sum.AddLinear(heads * layer.key_width, hidden);
    sum.AddLinear(heads * layer.key_width, layer.key_inputs());
    sum.AddLinear(heads * layer.value_width, layer.value_inputs());
  } else {
    sum.AddLinear(InputProjectionWidth(layer), hidden);
  }
  if (layer.has_output_projection) {
    sum.AddLinear(layer.projected_width(), heads * layer.value_width);
  }
  if (layer.has_query_key_norms) {
    sum.AddFloats(Norm(heads * layer.key_width) + Norm(heads * layer.key_width));
  }
  if (layer.attention == AttentionKind::kAdditive) sum.AddFloats(heads * layer.key_width);
  for (int i = 0; i < 2; ++i) sum.AddTable(layer.mixed_keys, layer.mixed_positions);
  AddPositions(layer, sum);
}

void AddConvolution(const LayerShape& layer, Footprint& sum) {
  const auto& [taps, groups, activation] = layer.convolution;
  if (taps == 0) return;
  const CheckedSize width = layer.hidden_size;
  const int64_t columns = layer.hidden_size / groups;
  Footprint group(sum.mode);
  group.AddLinear(columns, CheckedSize(columns) * taps);
  sum.kept = sum.kept + group.kept * groups + (Norm(width)) * Footprint::kFloat;
  sum.largest = Larger(sum.largest, (width * columns * taps + width) * Footprint::kFloat);
}

void AddLayer(const LayerShape& layer, Footprint& sum) {
  const CheckedSize outside = layer.hidden_size, hidden = layer.inner_width();
  if (layer.bottleneck > 0) {
    for (int i = 0; i < (layer.values_from_outside ? 2 : 1); ++i) sum.AddLinear(hidden, outside);
    sum.AddLinear(outside, hidden);
    sum.AddFloats(Norm(hidden) + Norm(hidden) + Norm(outside));
  }
  AddAttention(layer, sum);
  if (layer.feed_forward_width > 0) {
    sum.AddLinear(layer.feed_forward_width, hidden);
    if (layer.has_gate) sum.AddLinear(layer.feed_forward_width, hidden);
    sum.AddLinear(hidden, layer.feed_forward_width);
  }
  for (int64_t i = 1; i < layer.feed_forwards; ++i) {
    sum.AddLinear(layer.feed_forward_width, hidden);
    sum.AddLinear(hidden, layer.feed_forward_width);
    sum.AddFloats(Norm(hidden));
  }
  if (layer.norm_placement != NormPlacement::kNone) sum.AddFloats(Norm(hidden) + Norm(hidden));
  if (layer.has_second_attention_norm) sum.AddFloats(Norm(hidden));
  AddConvolution(layer, sum);
}

void AddPooling(const std::optional<PoolingDescription>& pooling, CheckedSize hidden,
                Footprint& sum) {
  if (!pooling) return;
  const CheckedSize modes = static_cast<int64_t>(pooling->modes.size());
  const CheckedSize dense = pooling->dense_width;
  sum.AddTable(dense, modes * hidden + CheckedSize(1));
  if (pooling->has_dense_norm) sum.AddFloats(Norm(dense));
  sum.AddTable(pooling->output_width, dense + CheckedSize(1));
}

Footprint OfModel(const ModelDescription& model, const ComputeMode& mode) {
  const CheckedSize hidden = model.layer.hidden_size;
  Footprint sum(mode);
  if (model.variants.empty()) {
    AddLayer(model.layer, sum);
    sum.kept = sum.kept * model.weight_sets();
  } else {
    for (int64_t i = 0; i < model.weight_sets(); ++i) AddLayer(model.layer_shape(i), sum);
  }
  if (const auto& embeddings = model.embeddings) {
    sum.AddTable(embeddings->vocabulary, embeddings->width);
    const int64_t added = embeddings->added_width(model.layer.hidden_size);
    sum.AddTable(embeddings->positions, added);
    sum.AddTable(embeddings->token_types, added);
    if (embeddings->has_norm) sum.AddFloats(Norm(embeddings->norm_width(model.layer.hidden_size)));
    if (embeddings->projected(model.layer.hidden_size)) {
      sum.AddLinear(hidden, CheckedSize(embeddings->has_neighbours ? 3 : 1) * embeddings->width);
    }
  }
  if (const RelativePositionShape& relative = model.layer.relative_positions;
      relative.kind == RelativePositions::kDisentangled) {
    sum.AddTable(CheckedSize(2) * std::max(relative.buckets, relative.max_distance), hidden);
    sum.AddFloats(Norm(hidden));
  } else {
    sum.AddTable(relative.buckets, model.layer.heads);
  }
  if (const auto& front = model.front) {
    if (front->feature_width > 0) sum.AddLinear(hidden, front->feature_width);
    sum.AddTable(front->registers, hidden);
    sum.AddTable(CheckedSize(front->positions) + CheckedSize(2), hidden);
    sum.AddFloats(Norm(hidden));
  }
  if (model.has_exit_norm) sum.AddFloats(Norm(hidden));
  AddPooling(model.pooling, hidden, sum);
  AddPooling(model.classifier, hidden, sum);
  return sum;
}

}  // namespace

CheckedSize PackedBytes(const ModelDescription& model, const ComputeMode& mode) {
  return OfModel(model, mode).kept;
}

CheckedSize LoadBytes(const ModelDescription& model, const ComputeMode& mode) {
  const Footprint sum = OfModel(model, mode);
  return sum.kept + sum.largest + sum.largest;
}

CheckedSize PrunedAttentionBytes(const ModelDescription& model, const ComputeMode& mode) {
  Footprint sum(mode);
  for (int64_t i = 0; HasPrunedHeads(model) && i < model.weight_sets(); ++i) {
    if (!model.variants[i].pruned_heads.empty()) AddAttention(model.layer_shape(i), sum);
  }
  return sum.kept + sum.largest + sum.largest;
}

}  // namespace attendant
