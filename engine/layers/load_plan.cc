#include "engine/layers/load_plan.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/kernels/operand.h"
#include "engine/layers/activations.h"

namespace attendant {
namespace {

// oneDNN's blocked layouts round the sides of a weight, or of a panel of its columns, up to at most
// this.
constexpr int64_t kWeightBlock = 64;
constexpr int64_t kPanelBlock = 192;
// Beside a column of the weight: its bias, its scale and oneDNN's own sum.
constexpr int64_t kColumnBytes = 3 * 4;

CheckedSize Norm(CheckedSize width) { return width + width; }

// Bytes of everything that is kept, and of the largest tensor that is packed from a copy.
struct Footprint {
  explicit Footprint(const ComputeMode& mode) : weight_width(OperandWidth(mode)) {}

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
  CheckedSize weight_width;  // bytes of an element of a packed weight
  CheckedSize kept;
  CheckedSize largest;
};

void AddLayer(const LayerShape& layer, Footprint& sum) {
  const CheckedSize hidden = layer.hidden_size;
  const CheckedSize heads = layer.heads;
  if (layer.needs_memory()) {
    sum.AddLinear(heads * layer.key_width, hidden);
    sum.AddLinear(heads * layer.key_width, layer.key_inputs());
    sum.AddLinear(heads * layer.value_width, layer.value_inputs());
  } else {
    sum.AddLinear(InputProjectionWidth(layer), hidden);
  }
  if (layer.has_output_projection) {
    sum.AddLinear(layer.projected_width(), heads * layer.value_width);
  }
  if (layer.feed_forward_width > 0) {
    sum.AddLinear(layer.feed_forward_width, hidden);
    if (layer.has_gate) sum.AddLinear(layer.feed_forward_width, hidden);
    sum.AddLinear(hidden, layer.feed_forward_width);
  }
  if (layer.norm_placement != NormPlacement::kNone) sum.AddFloats(Norm(hidden) + Norm(hidden));
  if (layer.has_second_attention_norm) sum.AddFloats(Norm(hidden));
  if (layer.has_query_key_norms) {
    sum.AddFloats(Norm(heads * layer.key_width) + Norm(heads * layer.key_width));
  }
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
  AddLayer(model.layer, sum);
  sum.kept = sum.kept * model.weight_sets();
  if (const auto& embeddings = model.embeddings) {
    sum.AddTable(embeddings->vocabulary, embeddings->width);
    sum.AddTable(embeddings->positions, embeddings->width);
    sum.AddTable(embeddings->token_types, embeddings->width);
    if (embeddings->has_norm) sum.AddFloats(Norm(embeddings->width));
    if (embeddings->projected(model.layer.hidden_size)) sum.AddLinear(hidden, embeddings->width);
  }
  sum.AddTable(model.layer.relative_positions.buckets, model.layer.heads);
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

// Every weight set from 0 on is that of a layer.
absl::Status CheckLayerMap(const ModelDescription& model) {
  if (model.layer_map.empty()) return absl::OkStatus();
  std::vector<int64_t> sets = model.layer_map;
  std::sort(sets.begin(), sets.end());
  bool fits = static_cast<int64_t>(sets.size()) == model.layers && sets.front() == 0;
  for (size_t i = 1; i < sets.size(); ++i) fits = fits && sets[i] - sets[i - 1] <= 1;
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "model description: expected a layer map of ", model.layers,
      " weight sets, from 0 on without gaps, got ", absl::StrJoin(model.layer_map, " ")));
}

absl::Status CheckVariants(const ModelDescription& model) {
  if (model.variants.empty()) return absl::OkStatus();
  if (static_cast<int64_t>(model.variants.size()) != model.weight_sets()) {
    return absl::InvalidArgumentError(
        absl::StrCat("model description: expected a variant for each "
                     "of ",
                     model.weight_sets(), " weight sets, got ", model.variants.size()));
  }
  for (const LayerVariant& variant : model.variants) {
    if (variant.has_attention_norm || model.layer.norm_placement == NormPlacement::kPre) continue;
    return absl::InvalidArgumentError(
        "model description: expected norms before the branches in a layer without attention norm");
  }
  return absl::OkStatus();
}

absl::Status CheckPoolings(const ModelDescription& model) {
  for (const auto* pooling : {&model.pooling, &model.classifier}) {
    if (!*pooling || (*pooling)->output_width == 0 || (*pooling)->dense_width > 0) continue;
    return absl::InvalidArgumentError(
        "model description: expected a linear layer behind the pooling before a second one, got "
        "none");
  }
  return absl::OkStatus();
}

// Queries, keys and values that share columns have one width, and nothing that is not in all.
absl::Status CheckSharing(const LayerShape& layer) {
  if (layer.values_are_keys && layer.value_width != layer.key_width) {
    return absl::InvalidArgumentError(
        absl::StrCat("model description: expected values as wide as the keys that they are, ",
                     layer.key_width, ", got ", layer.value_width));
  }
  if (!layer.has_input_projection && (!layer.keys_are_queries || !layer.values_are_keys ||
                                      layer.context_width() != layer.hidden_size)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model description: expected queries, keys and values that are the input, as wide as "
        "hidden_size ",
        layer.hidden_size, ", in a layer without input projection, got ", layer.context_width()));
  }
  const bool shares = layer.keys_are_queries || layer.values_are_keys;
  if (shares &&
      (layer.relative_positions.kind == RelativePositions::kRotary || layer.has_query_key_norms)) {
    return absl::InvalidArgumentError(
        "model description: expected projections of their own for queries, keys and values beside "
        "rotary positions or norms of queries and keys");
  }
  return absl::OkStatus();
}

absl::Status CheckMemoryInputs(const LayerShape& layer) {
  if (!layer.needs_memory() || (layer.takes_memory() && layer.has_input_projection &&
                                !layer.keys_are_queries && !layer.values_are_keys)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "model description: expected projections of their own for queries, keys and values, no "
      "relative positions and no window where they are made of rows of other widths, got ",
      layer.hidden_size, ", ", layer.key_inputs(), " and ", layer.value_inputs(), " columns"));
}

absl::Status CheckPositive(const ModelDescription& model) {
  std::pair<const char*, int64_t> sizes[] = {{"layers", model.layers},
                                             {"hidden_size", model.layer.hidden_size},
                                             {"heads", model.layer.heads},
                                             {"key_width", model.layer.key_width},
                                             {"value_width", model.layer.value_width}};
  for (const auto& [name, size] : sizes) {
    if (size < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("model description: expected ", name, " of at least 1, got ", size));
    }
  }
  return absl::OkStatus();
}

}  // namespace

CheckedSize PackedBytes(const ModelDescription& model, const ComputeMode& mode) {
  return OfModel(model, mode).kept;
}

CheckedSize LoadBytes(const ModelDescription& model, const ComputeMode& mode) {
  const Footprint sum = OfModel(model, mode);
  return sum.kept + sum.largest + sum.largest;
}

absl::Status CheckDescription(const ModelDescription& model) {
  absl::Status valid = CheckPositive(model);
  valid.Update(CheckLayerMap(model));
  if (valid.ok()) valid = CheckVariants(model);
  valid.Update(CheckPoolings(model));
  if (!valid.ok()) return valid;
  if (!LoadBytes(model, {}).ok()) {
    return absl::InvalidArgumentError("model description: sizes that are negative or overflow");
  }
  const LayerShape& layer = model.layer;
  const bool bare = layer.norm_placement == NormPlacement::kNone;
  if (bare && layer.feed_forward_width > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model description: expected no feed-forward block in a layer without residuals, got one "
        "of width ",
        layer.feed_forward_width));
  }
  if (!bare && layer.has_branch_scale && !layer.has_output_projection) {
    return absl::InvalidArgumentError(
        "model description: expected an output projection in a layer with a branch scale, got "
        "none");
  }
  if (layer.has_second_attention_norm && layer.norm_placement != NormPlacement::kPost) {
    return absl::InvalidArgumentError(
        "model description: expected norms behind the branches in a layer with a second attention "
        "norm");
  }
  if (model.front && model.front->feature_width != 0 &&
      (model.front->feature_width < 0 || model.embeddings)) {
    return absl::InvalidArgumentError(
        "model description: expected a linear layer for features of a positive width in a model "
        "without embeddings");
  }
  if (model.front && (model.front->positions < 0 || model.front->registers < 0 ||
                      (model.front->positions > 0 && model.front->features() < 1) ||
                      (model.front->has_distillation && !model.front->has_class))) {
    return absl::InvalidArgumentError(
        "model description: expected a front with positions for its tokens and for rows behind "
        "them, or none, and no distillation token without a class token");
  }
  const RelativePositionShape& relative = layer.relative_positions;
  if (layer.window < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("model description: expected a window of 0 or more, got ", layer.window));
  }
  if (relative.kind == RelativePositions::kRotary &&
      (relative.rotary_width < 2 || relative.rotary_width % 2 != 0 ||
       relative.rotary_width > layer.key_width)) {
    return absl::InvalidArgumentError(
        absl::StrCat("model description: expected an even rotary width from 2 to the key width ",
                     layer.key_width, ", got ", relative.rotary_width));
  }
  const bool needs_hidden_size =
      !bare || model.has_exit_norm || model.pooling.has_value() || model.classifier.has_value();
  if (layer.attention_width() != layer.hidden_size && needs_hidden_size) {
    return absl::InvalidArgumentError(
        absl::StrCat("model description: expected attention as wide as hidden_size ",
                     layer.hidden_size, ", got ", layer.attention_width()));
  }
  absl::Status status = CheckSharing(layer);
  status.Update(CheckMemoryInputs(layer));
  return status;
}

}  // namespace attendant
