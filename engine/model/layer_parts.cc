#include "engine/model/layer_parts.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/model/residual_blocks.h"

namespace attendant {
namespace {

using Parts = std::vector<ModelPart>;

// `stage` is the layer's stage if it differs from its name.
void AddLinear(const std::string& name, CheckedSize out, CheckedSize in, Parts& parts,
               const std::string& stage = "") {
  parts.push_back({.kind = PartKind::kLinear,
                   .name = name,
                   .out = out,
                   .in = in,
                   .stage = stage.empty() ? name : stage,
                   .linear = name});
}

void AddDense(const std::string& name, CheckedSize out, CheckedSize in, Parts& parts) {
  parts.push_back({.kind = PartKind::kDense, .name = name, .out = out, .in = in, .stage = name});
}

void AddScale(const std::string& name, CheckedSize width, const std::string& linear, Parts& parts) {
  parts.push_back({.kind = PartKind::kScale, .name = name, .out = width, .linear = linear});
}

void AddNorm(const std::string& name, NormKind kind, CheckedSize width, Parts& parts) {
  const bool has_bias = kind != NormKind::kRms && kind != NormKind::kRmsPlusOne;
  parts.push_back({.kind = PartKind::kNorm, .name = name, .out = width, .has_bias = has_bias});
}

// Adds nothing if there are no rows.
void AddTable(const std::string& name, CheckedSize rows, CheckedSize width, Parts& parts,
              DataType type = DataType::kFloat32) {
  if (rows.ok() && rows.value() == 0) return;
  parts.push_back({.kind = PartKind::kTable, .name = name, .out = rows, .in = width, .type = type});
}

void Append(Parts more, Parts& parts) {
  parts.insert(parts.end(), std::move_iterator(more.begin()), std::move_iterator(more.end()));
}

CheckedSize QueryColumns(const LayerShape& shape) {
  return CheckedSize(shape.attention.heads) * shape.attention.key_width;
}

CheckedSize KeyColumns(const LayerShape& shape) {
  return CheckedSize(shape.attention.kv_heads()) * shape.attention.key_width;
}

CheckedSize ValueColumns(const LayerShape& shape) {
  return CheckedSize(shape.attention.kv_heads()) * shape.attention.value_width;
}

CheckedSize ContextColumns(const LayerShape& shape) {
  return CheckedSize(shape.attention.heads) * shape.attention.value_width;
}

void AddNormedLinear(const std::string& name, CheckedSize out, CheckedSize in, NormKind kind,
                     Parts& parts) {
  AddLinear(name, out, in, parts);
  AddNorm(name + "_norm", kind, out, parts);
}

void AddAttentionKind(const LayerShape& shape, Parts& parts) {
  if (shape.attention.kind == AttentionKind::kAdditive) {
    parts.push_back({.kind = PartKind::kVector, .name = "score", .out = KeyColumns(shape)});
  }
  if (shape.attention.kind != AttentionKind::kLinformer) return;
  AddTable("key_mixing", shape.attention.linformer.keys, shape.attention.linformer.positions,
           parts);
  AddTable("value_mixing", shape.attention.linformer.keys, shape.attention.linformer.positions,
           parts);
}

void AddQueryKeyNorms(const LayerShape& shape, Parts& parts) {
  if (shape.attention.query_key_norms == QueryKeyNorms::kNone) return;
  const bool each = shape.attention.query_key_norms == QueryKeyNorms::kEachHead;
  const CheckedSize width = shape.attention.key_width;
  AddNorm("query_norm", shape.norms.kind, each ? width : QueryColumns(shape), parts);
  AddNorm("key_norm", shape.norms.kind, each ? width : KeyColumns(shape), parts);
}

void AddDistances(const LayerShape& shape, Parts& parts) {
  const RelativePositionShape& relative = shape.relative_positions;
  if (relative.kind != RelativePositions::kDisentangled || relative.shares_projections) return;
  const auto add = [&](const char* name) {
    parts.push_back({.kind = PartKind::kFolded,
                     .name = name,
                     .out = KeyColumns(shape),
                     .in = shape.hidden_size});
  };
  if (relative.scores_queries) add("position_key");
  if (relative.scores_keys) add("position_query");
}

void AddFeedForward(const std::string& block, const LayerShape& shape, Parts& parts) {
  const int64_t width = shape.inner_width(), inner = shape.feed_forward.width;
  const std::string out = block + "feed_forward_out";
  if (shape.feed_forward.has_gate) {
    AddLinear(block + "feed_forward_gate", inner, width, parts, "feed_forward.gate");
  }
  AddLinear(block + "feed_forward_in", inner, width, parts, "feed_forward.in");
  AddLinear(out, width, inner, parts, "feed_forward.out");
  if (shape.extras.has_branch_scale) AddScale(block + "feed_forward_scale", width, out, parts);
}

// A token passes through `per_token` experts, so the cost of that many experts is counted.
void AddMixture(const LayerShape& shape, Parts& parts) {
  const MixtureShape& mixture = shape.feed_forward.mixture;
  AddDense("router", mixture.experts, shape.inner_width(), parts);
  parts.back().stage = "feed_forward.router";
  for (int64_t i = 0; i < mixture.experts; ++i) {
    const size_t first = parts.size();
    AddFeedForward(ExpertPrefix("", i), shape, parts);
    if (i < mixture.per_token) continue;
    for (size_t j = first; j < parts.size(); ++j) parts[j].stage.clear();
  }
  parts.push_back({.kind = PartKind::kVector, .name = "experts_bias", .out = shape.inner_width()});
}

void AddConvolution(const LayerShape& shape, Parts& parts) {
  const auto& [taps, groups, activation] = shape.extras.convolution;
  const int64_t columns = shape.hidden_size / groups;
  AddLinear("convolution", columns, CheckedSize(columns) * taps, parts);
  parts.back().groups = groups;
  parts.back().taps = taps;
}

void AddBody(const ResidualBlockShape& block, const LayerShape& shape, Parts& parts) {
  switch (block.body) {
    case BlockBodyKind::kAttention:
      return Append(ListAttentionParts(shape), parts);
    case BlockBodyKind::kFeedForward:
      return AddFeedForward(block.prefix, shape, parts);
    case BlockBodyKind::kMixture:
      return AddMixture(shape, parts);
    case BlockBodyKind::kBottleneckOut:
      return AddLinear("bottleneck_out", shape.hidden_size, shape.inner_width(), parts);
    case BlockBodyKind::kConvolution:
      return AddConvolution(shape, parts);
  }
}

void AddEmbeddings(const EmbeddingShape& shape, const LayerShape& layer, Parts& parts) {
  const int64_t hidden_size = layer.hidden_size, added_width = shape.added_width(hidden_size);
  AddTable("embeddings.word", shape.vocabulary, shape.width, parts, shape.table_type);
  AddTable("embeddings.position", shape.positions, added_width, parts, shape.table_type);
  AddTable("embeddings.token_type", shape.token_types, added_width, parts, shape.table_type);
  AddTable("embeddings.task_type", shape.task_types, added_width, parts, shape.table_type);
  if (shape.has_norm) {
    AddNorm("embeddings.norm", layer.norms.kind, shape.norm_width(hidden_size), parts);
  }
  if (!shape.projected(hidden_size)) return;
  const CheckedSize words = shape.has_neighbours ? 3 : 1;
  AddLinear("embeddings.projection", hidden_size, words * shape.width, parts);
}

void AddPatchEmbedding(const PatchEmbeddingShape& shape, const LayerShape& layer, Parts& parts) {
  const int64_t width = layer.hidden_size;
  if (shape.feature_width > 0) AddLinear("front.projection", width, shape.feature_width, parts);
  AddTable("front.class", shape.has_class ? 1 : 0, width, parts);
  AddTable("front.distillation", shape.has_distillation ? 1 : 0, width, parts);
  AddTable("front.registers", shape.registers, width, parts);
  AddTable("front.positions", shape.positions, width, parts);
  if (shape.has_norm) AddNorm("front.norm", layer.norms.kind, width, parts);
}

// A table of one number or vector per relative position.
void AddRelativePositions(const LayerShape& layer, Parts& parts) {
  const RelativePositionShape& relative = layer.relative_positions;
  if (relative.kind == RelativePositions::kBuckets) {
    AddTable("relative_positions", relative.buckets, layer.attention.heads, parts);
  }
  if (relative.kind != RelativePositions::kDisentangled) return;
  const CheckedSize distances = relative.buckets > 0 ? relative.buckets : relative.max_distance;
  AddTable("relative_positions", CheckedSize(2) * distances, layer.hidden_size, parts);
  if (!relative.has_norm) return;
  AddNorm("relative_positions_norm", layer.norms.kind, layer.hidden_size, parts);
}

// The query of attention pooling is projected from the probe.
void AddAttentionPooling(const std::string& name, int64_t hidden_size, Parts& parts) {
  AddTable(name + ".probe", 1, hidden_size, parts);
  for (const char* projection : {".query", ".key"}) {
    parts.push_back({.kind = PartKind::kFolded,
                     .name = name + projection,
                     .out = hidden_size,
                     .in = hidden_size});
  }
  AddDense(name + ".value", hidden_size, hidden_size, parts);
}

void AddDenseHead(const DenseHeadShape& head, const LayerShape& layer, Parts& parts) {
  const PoolingDescription& shape = *head.shape;
  const std::string name = Name(head.kind);
  const bool per_sequence = head.kind == HeadKind::kPooling || head.kind == HeadKind::kClassifier;
  if (shape.attends()) AddAttentionPooling(name, layer.hidden_size, parts);
  const size_t first = parts.size();
  const CheckedSize modes = static_cast<int64_t>(std::max<size_t>(1, shape.modes.size()));
  CheckedSize width = modes * layer.hidden_size;
  for (const NamedDense& dense : shape.dense_layers()) {
    const std::string full_name = absl::StrCat(name, ".", dense.name);
    AddDense(full_name, dense.shape.width, width, parts);
    if (dense.shape.residual == Residual::kProjection) {
      AddDense(full_name + ".residual", dense.shape.width, width, parts);
    }
    width = dense.shape.width;
    if (dense.name != "dense" || !shape.has_dense_norm) continue;
    AddNorm(name + ".dense_norm", layer.norms.kind, width, parts);
  }
  if (shape.block.width > 0) {
    AddNorm(name + ".block_norm", layer.norms.kind, width, parts);
    AddDense(name + ".block_in", shape.block.width, width, parts);
    AddDense(name + ".block_out", width, shape.block.width, parts);
  }
  for (size_t i = first; i < parts.size(); ++i) parts[i].per_sequence = per_sequence;
}

void AddVocabularyHead(const ModelDescription& model, Parts& parts) {
  if (!model.vocabulary_head || !model.embeddings) return;
  const int64_t width = model.vocabulary_head->width;
  AddNormedLinear("vocabulary_head.dense", width, model.layer.hidden_size, model.layer.norms.kind,
                  parts);
  AddLinear("vocabulary_head.output", model.embeddings->vocabulary, width, parts);
}

}  // namespace

bool ArePackedAsOne(const ModelPart& part, const ModelPart& next) {
  return next.kind == PartKind::kLinear && part.linear == next.linear &&
         part.in.value() == next.in.value();
}

std::vector<ModelPart> InputProjections(const LayerShape& shape) {
  Parts parts;
  if (!shape.attention.has_input_projection || shape.attention.heads == 0) return parts;
  CheckedSize rows;
  const auto add = [&](const std::string& name, CheckedSize out, int64_t in) {
    if (shape.needs_cross_kv()) return AddLinear(name, out, in, parts, "attention." + name);
    AddLinear(name, out, in, parts, "attention.qkv");
    parts.back().linear = "qkv";
    parts.back().first_row = rows;
    rows = rows + out;
  };
  add("query", QueryColumns(shape), shape.inner_width());
  if (!shape.attention.keys_are_queries) add("key", KeyColumns(shape), shape.key_inputs());
  if (!shape.attention.values_are_keys) add("value", ValueColumns(shape), shape.value_inputs());
  return parts;
}

CheckedSize InputProjectionWidth(const LayerShape& layer) {
  CheckedSize width;
  for (const ModelPart& part : InputProjections(layer)) width = width + part.out;
  return width;
}

std::vector<ModelPart> ListAttentionParts(const LayerShape& shape) {
  Parts parts = InputProjections(shape);
  if (shape.attention.has_output_projection) {
    AddLinear("output", shape.projected_width(), ContextColumns(shape), parts, "attention.output");
  }
  if (shape.extras.has_branch_scale)
    AddScale("attention_scale", shape.inner_width(), "output", parts);
  AddQueryKeyNorms(shape, parts);
  AddAttentionKind(shape, parts);
  AddDistances(shape, parts);
  return parts;
}

std::vector<ModelPart> ListParts(const LayerShape& shape) {
  Parts parts;
  const NormKind norm = shape.norms.kind;
  const int64_t outside = shape.hidden_size, width = shape.inner_width();
  if (shape.extras.bottleneck.width > 0)
    AddNormedLinear("bottleneck_in", width, outside, norm, parts);
  if (shape.extras.bottleneck.values_from_outside) {
    AddNormedLinear("bottleneck_attention", width, outside, norm, parts);
  }
  for (const ResidualBlockShape& block : ListBlocks(shape)) {
    AddBody(block, shape, parts);
    for (const auto* each : {&block.before, &block.on_branch, &block.after}) {
      if (*each) AddNorm((*each)->name, norm, block.width, parts);
    }
  }
  return parts;
}

std::vector<ModelPart> ListPartsBefore(const ModelDescription& model) {
  Parts parts;
  if (model.embeddings) AddEmbeddings(*model.embeddings, model.layer, parts);
  if (model.patch_embedding) AddPatchEmbedding(*model.patch_embedding, model.layer, parts);
  AddRelativePositions(model.layer, parts);
  return parts;
}

std::vector<ModelPart> ListPartsAfter(const ModelDescription& model) {
  Parts parts;
  const LayerShape& layer = model.layer;
  if (model.has_exit_norm) AddNorm("exit_norm", layer.norms.kind, layer.hidden_size, parts);
  for (const DenseHeadShape& head : model.dense_heads()) AddDenseHead(head, layer, parts);
  AddVocabularyHead(model, parts);
  return parts;
}

std::vector<ModelPart> ListParts(const ModelDescription& model) {
  Parts parts = ListPartsBefore(model);
  for (int64_t i = 0; i < model.weight_sets(); ++i) {
    const std::string prefix = absl::StrCat("layer.", i, ".");
    for (ModelPart& part : ListParts(model.layer_shape(i))) {
      part.name.insert(0, prefix);
      if (!part.linear.empty()) part.linear.insert(0, prefix);
      parts.push_back(std::move(part));
    }
  }
  Append(ListPartsAfter(model), parts);
  return parts;
}

}  // namespace attendant
