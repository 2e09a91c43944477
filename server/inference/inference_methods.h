// Methods of inference.GRPCInferenceService that respond without a job.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <string>

#include "absl/status/statusor.h"
#include "engine/base/status_macros.h"
#include "inference/inference_service.pb.h"
#include "server/request/inline_method.h"
#include "server/wire/response_codec.h"

namespace attendant::server {

// Return NOT_FOUND for an unknown model or version, except for ModelReady, which reports it as not
// ready.
absl::StatusOr<inference::ServerLiveResponse> ServerLive(
    const MethodContext& context, const inference::ServerLiveRequest& request);
absl::StatusOr<inference::ServerReadyResponse> ServerReady(
    const MethodContext& context, const inference::ServerReadyRequest& request);
absl::StatusOr<inference::ModelReadyResponse> ModelReady(
    const MethodContext& context, const inference::ModelReadyRequest& request);
absl::StatusOr<inference::ServerMetadataResponse> ServerMetadata(
    const MethodContext& context, const inference::ServerMetadataRequest& request);
absl::StatusOr<inference::ModelMetadataResponse> ModelMetadata(
    const MethodContext& context, const inference::ModelMetadataRequest& request);
absl::StatusOr<inference::ModelConfigResponse> ModelConfig(
    const MethodContext& context, const inference::ModelConfigRequest& request);
absl::StatusOr<inference::ModelStatisticsResponse> ModelStatistics(
    const MethodContext& context, const inference::ModelStatisticsRequest& request);
absl::StatusOr<inference::RepositoryIndexResponse> RepositoryIndex(
    const MethodContext& context, const inference::RepositoryIndexRequest& request);
// There is no shared memory: nothing to report, and nothing to unregister.
absl::StatusOr<inference::SharedMemoryStatusResponse> SharedMemoryStatus(
    const MethodContext& context, const inference::SharedMemoryStatusRequest& request);
absl::StatusOr<inference::SharedMemoryUnregisterResponse> SharedMemoryUnregister(
    const MethodContext& context, const inference::SharedMemoryUnregisterRequest& request);

template <typename Request, typename Response>
absl::StatusOr<grpc::ByteBuffer> AnswerWith(absl::StatusOr<Response> (*method)(const MethodContext&,
                                                                               const Request&),
                                            const MethodContext& context,
                                            const grpc::ByteBuffer& message) {
  ASSIGN_OR_RETURN(const Request request, ParseInline<Request>(message));
  ASSIGN_OR_RETURN(const Response response, method(context, request));
  return SerializeResponse(response);
}

// Wraps one of these as an InlineMethod.
template <auto Method>
absl::StatusOr<grpc::ByteBuffer> Quick(const MethodContext& context,
                                       const grpc::ByteBuffer& message, std::string& /*model*/) {
  return AnswerWith(Method, context, message);
}

}  // namespace attendant::server
