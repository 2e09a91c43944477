#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "attendant/v1/encoder_service.pb.h"
#include "engine/base/status_macros.h"
#include "server/models/model_lookup.h"
#include "server/models/model_message.h"
#include "server/models/product_plans.h"
#include "server/rpc/calls.h"
#include "server/tensors/status_mapping.h"
#include "server/wire/response_codec.h"

namespace attendant::server {
namespace {

void Describe(const ServedModel& model, v1::GetModelResponse& out) {
  const ModelDescription& description = model.encoder->description();
  out.set_name(model.name);
  out.set_model_version(model.version);
  out.set_hub_repository(model.origin.repository);
  out.set_hub_commit(model.origin.commit);
  SetDescription(description, *model.tokenization, out);
  SetStageCosts(description, out);
  SetTexts(*model.tokenizer, out);
  const std::vector<std::string>& labels = model.tokenization->labels;
  out.mutable_labels()->Add(labels.begin(), labels.end());
  SetComputeMode(model.encoder->mode(), out);
  const std::vector<ProductPlan>& plans = model.encoder->product_plans();
  out.set_gemm(GemmOf(plans));
  out.set_weight_type(WeightTypeOf(model.encoder->mode().type, plans));
  out.set_weight_bytes(model.encoder->weight_bytes());
  out.set_base(model.base);
  out.mutable_unused_tensors()->Add(model.unused_tensors.begin(), model.unused_tensors.end());
}

void SetTokenization(const ServedModel& model, v1::GetTokenizerResponse& out) {
  const Tokenization& tokenization = *model.tokenization;
  const std::optional<EmbeddingShape>& embeddings = model.encoder->description().embeddings;
  if (embeddings) out.set_max_sequence_length(MaxSequenceLength(*embeddings, tokenization));
  out.set_lower_case(tokenization.lower_case);
  out.mutable_prompts()->insert(tokenization.prompts.begin(), tokenization.prompts.end());
  out.set_default_prompt(tokenization.default_prompt);
  out.mutable_labels()->Add(tokenization.labels.begin(), tokenization.labels.end());
  out.set_class_scores(ToProto(tokenization.class_scores));
  out.set_rank_scores(ToProto(tokenization.rank_scores));
  out.mutable_special_ids()->insert(tokenization.special_tokens.begin(),
                                    tokenization.special_tokens.end());
  const TokenSelection& selection = tokenization.selection;
  out.mutable_skipped_ids()->Add(selection.skipped_ids.begin(), selection.skipped_ids.end());
  out.mutable_skip_tasks()->Add(selection.skip_tasks.begin(), selection.skip_tasks.end());
  out.mutable_only_ids()->Add(selection.only_ids.begin(), selection.only_ids.end());
  out.mutable_task_lengths()->insert(tokenization.task_lengths.begin(),
                                     tokenization.task_lengths.end());
  if (const auto& expansion = tokenization.query_expansion) {
    out.mutable_query_expansion()->set_length(expansion->length);
    out.mutable_query_expansion()->set_token(expansion->token);
    out.mutable_query_expansion()->set_attended(expansion->attended);
  }
  out.set_model_version(model.version);
}

// Returns the model's tokenizer.json without copying it. The slice keeps it.
grpc::Slice TokenizerSlice(const ServedModel& model) {
  using Kept = std::shared_ptr<const Tokenization>;
  auto kept = std::make_unique<Kept>(model.tokenization);
  const std::string& text = (*kept)->tokenizer_json;
  return grpc::Slice(
      const_cast<char*>(text.data()), text.size(),
      [](void* owner) { delete static_cast<Kept*>(owner); }, kept.release());
}

void Describe(const ServiceLimits& from, v1::Limits& to) {
  to.set_max_request_tokens(from.max_request_tokens);
  to.set_max_batch_tokens(from.max_batch_tokens);
  to.set_max_request_bytes(from.max_request_bytes);
  to.set_max_answer_bytes(from.max_answer_bytes);
}

// Finds the model that a request names. NOT_FOUND tells why the newest version of a model is
// refused that has no other: an error has less room than an answer.
FoundModel Find(const ModelTable& models, const std::string& name) {
  FoundModel model = FindModel(models, name);
  if (model.ok()) return model;
  const std::vector<RefusedVersion> refused = models.Refused(name);
  if (refused.empty()) return model;
  return NotFound(
      "model", absl::StrCat("no model is named ", Quote(name)),
      absl::StrCat("version ", refused.front().version, " was refused: ", refused.front().reason));
}

}  // namespace

absl::StatusOr<grpc::ByteBuffer> ListModels(const MethodContext& context,
                                            const grpc::ByteBuffer& message, std::string&) {
  ASSIGN_OR_RETURN(const auto request, ParseInline<v1::ListModelsRequest>(message));
  v1::ListModelsResponse response;
  const std::shared_ptr<const ServedModels> models = context.service.models.Snapshot();
  for (const auto& [name, model] : *models) response.add_names(name);
  return SerializeResponse(response);
}

absl::StatusOr<grpc::ByteBuffer> GetModel(const MethodContext& context,
                                          const grpc::ByteBuffer& message,
                                          std::string& model_name) {
  ASSIGN_OR_RETURN(const auto request, ParseInline<v1::GetModelRequest>(message));
  ASSIGN_OR_RETURN(const auto model, Find(context.service.models, request.model()));
  model_name = model->name;
  v1::GetModelResponse described;
  Describe(*model, described);
  for (const RefusedVersion& refused : context.service.models.Refused(model_name)) {
    v1::RefusedVersion& told = *described.add_refused_versions();
    told.set_version(refused.version);
    told.set_reason(refused.reason);
  }
  Describe(context.service.limits, *described.mutable_limits());
  SetCostModel(*model->cost, context.service.clock.Now(), described);
  SetThreadPlan(context.service.thread_plan, described);
  described.mutable_thread_plan()->set_rows_per_thread_from(model->row_plan.rows_from);
  return SerializeResponse(described);
}

absl::StatusOr<grpc::ByteBuffer> GetTokenizer(const MethodContext& context,
                                              const grpc::ByteBuffer& message,
                                              std::string& model_name) {
  ASSIGN_OR_RETURN(const auto request, ParseInline<v1::GetTokenizerRequest>(message));
  ASSIGN_OR_RETURN(const auto model, Find(context.service.models, request.model()));
  model_name = model->name;
  const Tokenization& tokenization = *model->tokenization;
  const int64_t bytes = static_cast<int64_t>(tokenization.tokenizer_json.size());
  if (bytes == 0) {
    return absl::NotFoundError(
        absl::StrCat("model ", model_name, " has no tokenizer: ", tokenization.why_no_tokenizer));
  }
  if (bytes > context.service.limits.max_answer_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the tokenizer of model ", model_name, " has ", bytes, " bytes; the server allows ",
        context.service.limits.max_answer_bytes, " (--max-answer-bytes)"));
  }
  v1::GetTokenizerResponse response;
  SetTokenization(*model, response);
  MessageWriter writer(response);
  writer.Add(v1::GetTokenizerResponse::kTokenizerJsonFieldNumber, TokenizerSlice(*model));
  return std::move(writer).Finish();
}

absl::StatusOr<grpc::ByteBuffer> DropMemory(const MethodContext& context,
                                            const grpc::ByteBuffer& message, std::string&) {
  ASSIGN_OR_RETURN(const auto request, ParseInline<v1::DropMemoryRequest>(message));
  ASSIGN_OR_RETURN(const int64_t bytes, context.service.cross_kv.Drop(request.handle()));
  v1::DropMemoryResponse dropped;
  dropped.set_bytes(bytes);
  return SerializeResponse(dropped);
}

}  // namespace attendant::server
