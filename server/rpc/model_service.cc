#include "server/rpc/model_service.h"

#include <grpcpp/impl/codegen/proto_utils.h>

#include "engine/kernels/isa.h"
#include "engine/model/layer_parts.h"
#include "engine/model/model_facts.h"
#include "server/cross_kv/stream_sequence.h"
#include "server/models/compute_dtype.h"
#include "server/models/model_lookup.h"
#include "server/models/product_plans.h"
#include "server/rpc/request_end.h"
#include "server/tensors/status_mapping.h"
#include "server/wire/request_codec.h"

namespace attendant::server {
namespace {

constexpr int64_t kMaxRequestBytes = 64 << 10;

void Describe(const LayerShape& layer, v1::LayerDescription& out) {
  out.set_hidden_size(layer.hidden_size);
  out.set_heads(layer.heads);
  out.set_key_width(layer.key_width);
  out.set_value_width(layer.value_width);
  out.set_feed_forward_width(layer.feed_forward_width);
  out.set_score_scale(layer.score_scale);
  out.set_norm_placement(Name(layer.norm_placement));
  out.set_norm_epsilon(layer.norm_epsilon);
  out.set_activation(Name(layer.activation));
  out.set_has_output_projection(layer.has_output_projection);
  out.set_norm_kind(Name(layer.norm_kind));
  out.set_has_gate(layer.has_gate);
  out.set_has_branch_scale(layer.has_branch_scale);
  out.set_relative_positions(Name(layer.relative_positions.kind));
  out.set_output_width(layer.attention_width());
  out.set_input_projections(static_cast<int64_t>(InputProjections(layer).size()));
  out.set_window(layer.window);
  out.set_attention(Name(layer.attention));
  out.set_window_block(layer.pattern.block);
  out.set_first_global_blocks(layer.pattern.first_global);
  out.set_last_global_blocks(layer.pattern.last_global);
  out.set_full_attention_up_to(layer.pattern.full_up_to);
  out.set_key_input_width(layer.key_inputs());
  out.set_value_input_width(layer.value_inputs());
}

void Describe(const EmbeddingShape& embeddings, v1::EmbeddingDescription& out) {
  out.set_vocabulary(embeddings.vocabulary);
  out.set_positions(embeddings.positions);
  out.set_longest_sequence(embeddings.longest_sequence());
  out.set_token_types(embeddings.token_types);
}

void Describe(const ServedModel& model, v1::GetModelResponse& out) {
  const ModelDescription& description = model.encoder->description();
  out.set_name(model.name);
  out.set_family(description.family);
  Describe(description.layer, *out.mutable_layer());
  out.set_layers(description.layers);
  out.set_weight_sets(description.weight_sets());
  out.set_has_exit_norm(description.has_exit_norm);
  for (int64_t i = 0; i < description.layers; ++i) {
    const LayerShape layer = description.layer_at(i);
    if (layer.window > 0) out.add_windowed_layers(i);
    if (layer.heads == description.layer.heads) continue;
    v1::PrunedLayer& pruned = *out.add_pruned_layers();
    pruned.set_layer(i);
    pruned.mutable_heads()->Add(layer.head_numbers.begin(), layer.head_numbers.end());
  }
  const BlockLists& blocks = description.layer.pattern.listed;
  for (const BlockPair& block_pair : blocks.pairs()) {
    v1::BlockPair& pair = *out.add_block_pairs();
    pair.set_query(block_pair.query);
    pair.set_key(block_pair.key);
  }
  out.mutable_global_blocks()->Add(blocks.globals().begin(), blocks.globals().end());
  if (description.embeddings) Describe(*description.embeddings, *out.mutable_embeddings());
  if (description.patch_embedding) {
    out.mutable_front()->set_own_rows(description.patch_embedding->prefix_tokens());
    out.mutable_front()->set_features(description.patch_embedding->features());
    out.mutable_front()->set_needs_every(description.patch_embedding->needs_every);
    out.mutable_front()->set_feature_width(
        description.patch_embedding->width(description.layer.hidden_size));
  }
  if (description.pooling) {
    out.set_pooled_width(description.pooling->width(description.layer.hidden_size));
  }
  if (description.classifier) {
    out.set_classes(description.classifier->width(description.layer.hidden_size));
  }
  SetComputeType(model.encoder->mode().type, out);
  out.set_gemm(GemmOf(model.encoder->product_plans()));
  out.set_weight_bytes(model.encoder->weight_bytes());
  out.set_base(model.base);
  out.set_sequence_state_bytes(SequenceStateBytes(description));
  for (const StageCost& cost : ListStageCosts(description)) {
    v1::StageCost& listed = *out.add_stage_costs();
    listed.set_stage(cost.stage);
    listed.set_flops_per_token(cost.per_token);
    listed.set_flops_per_pair(cost.per_pair);
    listed.set_flops_per_sequence(cost.per_sequence);
  }
  out.mutable_unused_tensors()->Add(model.unused_tensors.begin(), model.unused_tensors.end());
}

void Describe(const ServiceContext& context, v1::GetModelResponse& out) {
  v1::Limits& limits = *out.mutable_limits();
  limits.set_max_request_tokens(context.limits.max_request_tokens);
  limits.set_max_batch_tokens(context.limits.max_batch_tokens);
  limits.set_max_request_bytes(context.limits.max_request_bytes);
  limits.set_max_answer_bytes(context.limits.max_answer_bytes);
  v1::ThreadPlan& plan = *out.mutable_thread_plan();
  plan.set_instances(context.thread_plan.instances);
  plan.set_threads_per_instance(context.thread_plan.threads_per_instance);
  plan.set_isa(EffectiveIsa());
  plan.set_onednn_version(OneDnnVersion());
  for (const int copy : context.thread_plan.copy_of_instance) {
    plan.add_instance_nodes(context.thread_plan.nodes[copy].id);
  }
}

absl::StatusOr<std::shared_ptr<const ServedModel>> Find(const grpc::ByteBuffer& message,
                                                        const ServedModels& models) {
  v1::GetModelRequest request;
  const auto payloads = ParseRequest(message, kMaxRequestBytes, request);
  if (!payloads.ok()) return payloads.status();
  return FindModel(models, request.model());
}

absl::StatusOr<int64_t> Drop(const grpc::ByteBuffer& message, CrossKvStore& store) {
  v1::DropMemoryRequest request;
  const auto payloads = ParseRequest(message, kMaxRequestBytes, request);
  if (!payloads.ok()) return payloads.status();
  return store.Drop(request.handle());
}

}  // namespace

grpc::ServerUnaryReactor* ModelService::ListModels(grpc::CallbackServerContext* call,
                                                   const v1::ListModelsRequest*,
                                                   v1::ListModelsResponse* response) {
  for (const auto& [name, model] : context_.models) response->add_names(name);
  RequestAccount("ListModels").Report(absl::OkStatus(), context_.metrics);
  grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerUnaryReactor* ModelService::GetModel(grpc::CallbackServerContext* call,
                                                 const grpc::ByteBuffer* request,
                                                 grpc::ByteBuffer* response) {
  const auto model = Find(*request, context_.models);
  RequestAccount account("GetModel");
  if (model.ok()) {
    account.SetModel((*model)->name);
    v1::GetModelResponse described;
    Describe(**model, described);
    Describe(context_, described);
    described.mutable_thread_plan()->set_rows_per_thread_from(row_plans_.RowsFrom(**model));
    bool own_buffer;
    grpc::SerializationTraits<v1::GetModelResponse>::Serialize(described, response, &own_buffer);
  }
  account.Report(model.status(), context_.metrics);
  grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
  reactor->Finish(ToGrpcStatus(model.status()));
  return reactor;
}

grpc::ServerUnaryReactor* ModelService::DropMemory(grpc::CallbackServerContext* call,
                                                   const grpc::ByteBuffer* request,
                                                   grpc::ByteBuffer* response) {
  const absl::StatusOr<int64_t> bytes = Drop(*request, context_.cross_kv);
  if (bytes.ok()) {
    v1::DropMemoryResponse dropped;
    dropped.set_bytes(*bytes);
    bool own_buffer;
    grpc::SerializationTraits<v1::DropMemoryResponse>::Serialize(dropped, response, &own_buffer);
  }
  RequestAccount("DropMemory").Report(bytes.status(), context_.metrics);
  grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
  reactor->Finish(ToGrpcStatus(bytes.status()));
  return reactor;
}

}  // namespace attendant::server
