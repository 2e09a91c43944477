#include "server/models/model_message.h"

#include "engine/kernels/isa.h"
#include "engine/model/layer_parts.h"
#include "engine/model/model_facts.h"
#include "server/models/compute_dtype.h"
#include "server/models/sequence_state.h"

namespace attendant::server {
namespace {

void SetLayer(const LayerShape& layer, v1::LayerDescription& out) {
  out.set_hidden_size(layer.hidden_size);
  out.set_heads(layer.attention.heads);
  out.set_key_width(layer.attention.key_width);
  out.set_value_width(layer.attention.value_width);
  out.set_feed_forward_width(layer.feed_forward.width);
  out.set_score_scale(layer.attention.score_scale);
  out.set_norm_placement(Name(layer.norms.placement));
  out.set_norm_epsilon(layer.norms.epsilon);
  out.set_activation(Name(layer.feed_forward.activation));
  out.set_has_output_projection(layer.attention.has_output_projection);
  out.set_norm_kind(Name(layer.norms.kind));
  out.set_has_gate(layer.feed_forward.has_gate);
  out.set_has_branch_scale(layer.extras.has_branch_scale);
  out.set_relative_positions(Name(layer.relative_positions.kind));
  out.set_output_width(layer.attention_width());
  out.set_input_projections(static_cast<int64_t>(InputProjections(layer).size()));
  out.set_window(layer.attention.window);
  out.set_attention(Name(layer.attention.kind));
  out.set_key_value_heads(layer.attention.kv_heads());
  out.set_causal(layer.attention.causal);
  out.set_query_key_norms(Name(layer.attention.query_key_norms));
  out.set_window_block(layer.attention.pattern.block);
  out.set_first_global_blocks(layer.attention.pattern.first_global);
  out.set_last_global_blocks(layer.attention.pattern.last_global);
  out.set_full_attention_up_to(layer.attention.pattern.full_up_to);
  out.set_key_input_width(layer.key_inputs());
  out.set_value_input_width(layer.value_inputs());
  out.set_bottleneck(layer.extras.bottleneck.width);
  out.set_feed_forwards(layer.feed_forward.blocks);
  out.set_experts(layer.feed_forward.mixture.experts);
  out.set_experts_per_token(layer.feed_forward.mixture.per_token);
  out.mutable_convolution()->set_taps(layer.extras.convolution.taps);
  out.mutable_convolution()->set_groups(layer.extras.convolution.groups);
  out.mutable_convolution()->set_activation(Name(layer.extras.convolution.activation));
}

// Layers that differ from the others, and blocks that windows do not bound.
void SetLists(const ModelDescription& model, v1::GetModelResponse& out) {
  for (int64_t i = 0; i < model.layers; ++i) {
    const LayerShape& layer = model.layer_at(i);
    if (layer.attention.window > 0) out.add_windowed_layers(i);
    if (layer.extras.convolution.taps > 0) out.add_convolution_layers(i);
    if (layer.feed_forward.mixture.experts > 0) out.add_expert_layers(i);
    if (layer.attention.heads == model.layer.attention.heads) continue;
    v1::PrunedLayer& pruned = *out.add_pruned_layers();
    pruned.set_layer(i);
    pruned.mutable_heads()->Add(layer.attention.head_numbers.begin(),
                                layer.attention.head_numbers.end());
  }
  const BlockLists& blocks = model.layer.attention.pattern.listed;
  for (const BlockPair& block_pair : blocks.pairs()) {
    v1::BlockPair& pair = *out.add_block_pairs();
    pair.set_query(block_pair.query);
    pair.set_key(block_pair.key);
  }
  out.mutable_global_blocks()->Add(blocks.globals().begin(), blocks.globals().end());
}

void SetEmbeddings(const EmbeddingShape& embeddings, const Tokenization& tokenization,
                   v1::EmbeddingDescription& out) {
  out.set_vocabulary(embeddings.vocabulary);
  out.set_positions(embeddings.positions);
  out.set_longest_sequence(embeddings.longest_sequence());
  out.set_token_types(embeddings.token_types);
  out.set_width(embeddings.width);
  out.set_max_sequence_length(MaxSequenceLength(embeddings, tokenization));
  out.set_truncates_left(tokenization.truncates_left);
  if (tokenization.padding.length == 0) return;
  out.mutable_text_padding()->set_length(tokenization.padding.length);
  out.mutable_text_padding()->set_id(tokenization.padding.id);
  out.mutable_text_padding()->set_is_left(tokenization.padding.is_left);
}

void SetPatchEmbedding(const PatchEmbeddingShape& shape, int64_t hidden_size,
                       v1::FrontDescription& out) {
  out.set_own_rows(shape.prefix_tokens());
  out.set_features(shape.features());
  out.set_needs_every(shape.needs_every);
  out.set_feature_width(shape.width(hidden_size));
  out.set_image_size(shape.image_size);
  out.set_patch_size(shape.patch_size);
}

void SetPooling(const PoolingDescription& pooling, int64_t hidden_size,
                v1::PoolingDescription& out) {
  for (const PoolingMode mode : pooling.modes) out.add_modes(Name(mode));
  out.set_dense_width(pooling.dense_width);
  out.set_dense_activation(Name(pooling.dense_activation));
  out.set_normalize(pooling.normalize);
  out.set_width(pooling.width(hidden_size));
  out.set_excludes_prompt(pooling.excludes_prompt);
  out.set_dense_residual(pooling.dense_residual != Residual::kNone);
  const auto add_dense = [&](const DenseShape& shape) {
    if (shape.width == 0) return;
    v1::DenseDescription& dense = *out.add_further_dense();
    dense.set_width(shape.width);
    dense.set_activation(Name(shape.activation));
    dense.set_residual(shape.residual != Residual::kNone);
  };
  add_dense({pooling.output_width});
  for (const DenseShape& dense : pooling.further_dense) add_dense(dense);
  if (pooling.end_id == PoolingDescription::kLargestId) {
    out.mutable_end()->set_is_largest(true);
  } else if (pooling.end_id != PoolingDescription::kNoEnd) {
    out.mutable_end()->set_id(pooling.end_id);
  }
  if (pooling.block.width == 0) return;
  out.mutable_block()->set_width(pooling.block.width);
  out.mutable_block()->set_activation(Name(pooling.block.activation));
}

}  // namespace

void SetDescription(const ModelDescription& model, const Tokenization& tokenization,
                    v1::GetModelResponse& out) {
  const int64_t hidden_size = model.layer.hidden_size;
  out.set_family(model.family);
  out.set_layers(model.layers);
  out.set_weight_sets(model.weight_sets());
  out.set_has_exit_norm(model.has_exit_norm);
  if (model.layers > 0) {
    SetLayer(model.layer, *out.mutable_layer());
  } else {
    v1::LayerDescription& embeddings = *out.mutable_layer();
    embeddings.set_hidden_size(hidden_size);
    embeddings.set_key_input_width(hidden_size);
    embeddings.set_value_input_width(hidden_size);
  }
  SetLists(model, out);
  if (model.embeddings) {
    SetEmbeddings(*model.embeddings, tokenization, *out.mutable_embeddings());
  }
  if (model.patch_embedding)
    SetPatchEmbedding(*model.patch_embedding, hidden_size, *out.mutable_front());
  if (model.pooling) {
    SetPooling(*model.pooling, hidden_size, *out.mutable_pooling());
    out.set_pooled_width(out.pooling().width());
  }
  if (model.classifier) {
    SetPooling(*model.classifier, hidden_size, *out.mutable_classifier());
    out.set_classes(out.classifier().width());
  }
  out.set_text_pooling(tokenization.texts_take_mean ? v1::MEAN : v1::MODEL_POOLING);
  out.set_class_scores(ToProto(tokenization.class_scores));
  out.set_rank_scores(ToProto(tokenization.rank_scores));
  out.set_sparse_width(model.sparse_width());
  if (model.similarity) {
    out.mutable_similarity()->set_scale(model.similarity->scale);
    out.mutable_similarity()->set_bias(model.similarity->bias);
  }
  if (model.token_head) SetPooling(*model.token_head, hidden_size, *out.mutable_token_head());
  out.set_multi_vector(model.token_head && tokenization.is_multi_vector);
  if (WhyNotInChunks(model).empty()) {
    out.set_sequence_state_bytes(SequenceStateBytes(model, model.layers));
  }
}

v1::ScoreFunction ToProto(ScoreFunction function) {
  switch (function) {
    case ScoreFunction::kUnknown:
      break;
    case ScoreFunction::kSoftmax:
      return v1::SCORES_SOFTMAX;
    case ScoreFunction::kSigmoid:
      return v1::SCORES_SIGMOID;
    case ScoreFunction::kPlain:
      return v1::SCORES_PLAIN;
  }
  return v1::SCORES_UNKNOWN;
}

v1::Truncation DefaultTruncation(const Tokenization& tokenization) {
  return tokenization.truncates_left ? v1::TRUNCATE_LEFT : v1::TRUNCATE_RIGHT;
}

void SetStageCosts(const ModelDescription& model, v1::GetModelResponse& out) {
  for (const StageCost& cost : ListStageCosts(model)) {
    v1::StageCost& listed = *out.add_stage_costs();
    listed.set_stage(cost.stage);
    listed.set_flops_per_token(cost.per_token);
    listed.set_flops_per_pair(cost.per_pair);
    listed.set_flops_per_sequence(cost.per_sequence);
  }
}

void SetComputeMode(const ComputeMode& mode, v1::GetModelResponse& out) {
  SetComputeType(mode.type, out);
  out.set_emulate(mode.emulate);
}

void SetCostModel(const CostModel& cost, absl::Time now, v1::GetModelResponse& out) {
  const CostRates rates = cost.rates();
  v1::CostModel& told = *out.mutable_cost_model();
  told.set_seconds_per_layer(static_cast<float>(rates.seconds_per_layer));
  told.set_product_flops_per_second(static_cast<float>(rates.product_flops));
  told.set_attention_flops_per_second(static_cast<float>(rates.attention_flops));
  told.set_correction(static_cast<float>(cost.correction(now)));
}

void SetTexts(const ModelTokenizer& tokenizer, v1::GetModelResponse& out) {
  out.set_takes_texts(tokenizer.tokenizer != nullptr);
  out.set_why_no_texts(tokenizer.why_none);
  out.mutable_cost_model()->set_text_bytes_per_second(
      static_cast<float>(tokenizer.bytes_per_second));
}

void SetThreadPlan(const ThreadPlan& plan, v1::GetModelResponse& out) {
  v1::ThreadPlan& planned = *out.mutable_thread_plan();
  planned.set_instances(plan.instances);
  planned.set_threads_per_instance(plan.threads_per_instance);
  planned.set_isa(EffectiveIsa());
  planned.set_onednn_version(OneDnnVersion());
  for (const int copy : plan.copy_of_instance) planned.add_instance_nodes(plan.nodes[copy].id);
}

}  // namespace attendant::server
