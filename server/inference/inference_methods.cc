#include "server/inference/inference_methods.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/inference/infer_value.h"
#include "server/inference/inference_model.h"

namespace attendant::server {
namespace {

constexpr char kPlatform[] = "attendant";

absl::StatusOr<InferenceModel> Find(const MethodContext& context, const std::string& name,
                                    const std::string& version) {
  return FindInferenceModel(context.service.models, name, version);
}

void Describe(const TensorInterface& tensor,
              inference::ModelMetadataResponse::TensorMetadata& described) {
  described.set_name(tensor.name);
  described.set_datatype(tensor.datatype);
  described.mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
}

// Of an input or output of a configuration, which leaves out the batch.
template <typename Configured>
void Configure(const TensorInterface& tensor, Configured& configured) {
  configured.set_name(tensor.name);
  const Datatype* datatype = FindDatatype(tensor.datatype);  // null: texts
  configured.set_data_type(datatype == nullptr ? inference::TYPE_STRING : datatype->config);
  configured.mutable_dims()->Add(tensor.shape.begin() + 1, tensor.shape.end());
}

void Set(int64_t count, absl::Duration duration, inference::StatisticDuration& out) {
  out.set_count(static_cast<uint64_t>(count));
  out.set_ns(static_cast<uint64_t>(absl::ToInt64Nanoseconds(duration)));
}

void Describe(const std::string& name, const ServedModel& model, const ModelFigures& figures,
              inference::ModelStatistics& out) {
  out.set_name(name);
  out.set_version(VersionText(model));
  if (figures.last != absl::InfinitePast()) {
    out.set_last_inference(static_cast<uint64_t>(absl::ToUnixMillis(figures.last)));
  }
  out.set_inference_count(static_cast<uint64_t>(figures.sequences));
  out.set_execution_count(static_cast<uint64_t>(figures.batches));
  inference::InferStatistics& stats = *out.mutable_inference_stats();
  Set(figures.answered, figures.answered_time, *stats.mutable_success());
  Set(figures.failed, figures.failed_time, *stats.mutable_fail());
  Set(figures.answered, figures.queued, *stats.mutable_queue());
  Set(figures.answered, figures.copied_in, *stats.mutable_compute_input());
  Set(figures.answered, figures.computed, *stats.mutable_compute_infer());
  Set(figures.answered, figures.copied_out, *stats.mutable_compute_output());
}

void AddRefused(const std::string& name, const std::vector<RefusedVersion>& versions,
                inference::RepositoryIndexResponse& out) {
  for (const RefusedVersion& version : versions) {
    inference::RepositoryIndexResponse::ModelIndex& index = *out.add_models();
    index.set_name(name);
    index.set_version(absl::StrCat(version.version));
    index.set_state("UNAVAILABLE");
    index.set_reason(version.reason);
  }
}

}  // namespace

absl::StatusOr<inference::ServerLiveResponse> ServerLive(const MethodContext&,
                                                         const inference::ServerLiveRequest&) {
  inference::ServerLiveResponse response;
  response.set_live(true);
  return response;
}

absl::StatusOr<inference::ServerReadyResponse> ServerReady(const MethodContext& context,
                                                           const inference::ServerReadyRequest&) {
  inference::ServerReadyResponse response;
  response.set_ready(context.health.Find("").value_or(false));
  return response;
}

absl::StatusOr<inference::ModelReadyResponse> ModelReady(
    const MethodContext& context, const inference::ModelReadyRequest& request) {
  const absl::StatusOr<InferenceModel> model = Find(context, request.name(), request.version());
  inference::ModelReadyResponse response;
  response.set_ready(model.ok() && context.health.Find("").value_or(false));
  return response;
}

absl::StatusOr<inference::ServerMetadataResponse> ServerMetadata(
    const MethodContext&, const inference::ServerMetadataRequest&) {
  inference::ServerMetadataResponse response;
  response.set_name(kPlatform);
  response.set_version(ATTENDANT_VERSION);
  for (const char* extension : {"model_configuration", "model_repository", "statistics"}) {
    response.add_extensions(extension);
  }
  return response;
}

absl::StatusOr<inference::ModelMetadataResponse> ModelMetadata(
    const MethodContext& context, const inference::ModelMetadataRequest& request) {
  ASSIGN_OR_RETURN(const InferenceModel model, Find(context, request.name(), request.version()));
  inference::ModelMetadataResponse response;
  response.set_name(model.name);
  response.add_versions(VersionText(*model.model));
  response.set_platform(kPlatform);
  for (const TensorInterface& input : InputsOf(model)) Describe(input, *response.add_inputs());
  for (const TensorInterface& output : OutputsOf(model)) Describe(output, *response.add_outputs());
  return response;
}

absl::StatusOr<inference::ModelConfigResponse> ModelConfig(
    const MethodContext& context, const inference::ModelConfigRequest& request) {
  ASSIGN_OR_RETURN(const InferenceModel model, Find(context, request.name(), request.version()));
  inference::ModelConfigResponse response;
  inference::ModelConfig& config = *response.mutable_config();
  config.set_name(model.name);
  config.set_platform(kPlatform);
  config.set_backend(kPlatform);
  // Bounded by tokens, because every sequence has at least one.
  config.set_max_batch_size(static_cast<int32_t>(context.service.limits.max_request_tokens));
  for (const TensorInterface& tensor : InputsOf(model)) {
    inference::ModelInput& input = *config.add_input();
    Configure(tensor, input);
    input.set_optional(tensor.optional);
  }
  for (const TensorInterface& tensor : OutputsOf(model)) Configure(tensor, *config.add_output());
  inference::ModelInstanceGroup& instances = *config.add_instance_group();
  instances.set_kind(inference::ModelInstanceGroup::KIND_CPU);
  instances.set_count(context.service.thread_plan.instances);
  config.mutable_dynamic_batching();
  return response;
}

absl::StatusOr<inference::ModelStatisticsResponse> ModelStatistics(
    const MethodContext& context, const inference::ModelStatisticsRequest& request) {
  inference::ModelStatisticsResponse response;
  const ServerMetrics& metrics = context.service.metrics;
  if (!request.name().empty()) {
    ASSIGN_OR_RETURN(const InferenceModel model, Find(context, request.name(), request.version()));
    Describe(model.name, *model.model, metrics.FiguresOf(model.model->name),
             *response.add_model_stats());
    return response;
  }
  const std::shared_ptr<const ServedModels> models = context.service.models.Snapshot();
  for (const auto& [name, model] : *models) {
    Describe(name, *model, metrics.FiguresOf(name), *response.add_model_stats());
  }
  return response;
}

absl::StatusOr<inference::RepositoryIndexResponse> RepositoryIndex(
    const MethodContext& context, const inference::RepositoryIndexRequest& request) {
  inference::RepositoryIndexResponse response;
  const std::shared_ptr<const ServedModels> models = context.service.models.Snapshot();
  for (const auto& [name, model] : *models) {
    for (const std::string& told : InferenceNames(*model)) {
      inference::RepositoryIndexResponse::ModelIndex& index = *response.add_models();
      index.set_name(told);
      index.set_version(VersionText(*model));
      index.set_state("READY");
    }
  }
  if (request.ready()) return response;
  for (const auto& [name, versions] : context.service.models.AllRefused()) {
    AddRefused(name, versions, response);
  }
  return response;
}

absl::StatusOr<inference::SharedMemoryStatusResponse> SharedMemoryStatus(
    const MethodContext&, const inference::SharedMemoryStatusRequest&) {
  return inference::SharedMemoryStatusResponse();
}

absl::StatusOr<inference::SharedMemoryUnregisterResponse> SharedMemoryUnregister(
    const MethodContext&, const inference::SharedMemoryUnregisterRequest&) {
  return inference::SharedMemoryUnregisterResponse();
}

}  // namespace attendant::server
