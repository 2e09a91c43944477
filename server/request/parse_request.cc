#include "server/request/parse_request.h"

#include <utility>
#include <variant>

#include "engine/base/status_macros.h"
#include "server/models/model_lookup.h"
#include "server/request/parse_own_fields.h"
#include "server/request/shared_fields.h"

namespace attendant::server {
namespace {

// Outputs have the type of the input's numbers.
DataType DefaultDtype(const Input& input) {
  if (const auto* features = std::get_if<FeatureRows>(&input)) return features->tensor.dtype;
  const auto* hidden_states = std::get_if<CheckedTensor>(&input);
  return hidden_states ? hidden_states->dtype : DataType::kFloat32;
}

// Returns the model version behind the request's handle or sequence; null if it has neither.
FoundModel MakerOf(const v1::AttendRequest& request, const ComputeRequest&,
                   const ServiceContext& context) {
  if (request.memory_handle().empty()) return nullptr;
  const auto memory = context.cross_kv.Find(request.memory_handle());
  return memory.ok() ? (*memory)->origin().model : nullptr;  // which ParseOwnFields refuses
}

FoundModel MakerOf(const v1::EncodeRequest&, const ComputeRequest& compute, const ServiceContext&) {
  if (compute.sequence() == nullptr) return nullptr;
  return compute.sequence()->model();
}

template <typename Request>
absl::StatusOr<ComputeRequest> ParseEither(const Request& request, const RequestPayloads& payloads,
                                           const ServiceContext& context,
                                           EncodeOrigin origin = {}) {
  ComputeRequest compute;
  compute.client = std::move(origin.client);
  if (origin.sequence != nullptr) compute.keys = Chunk{std::move(origin.sequence)};
  ASSIGN_OR_RETURN(auto maker, MakerOf(request, compute, context));
  ASSIGN_OR_RETURN(compute.span.model,
                   FindModel(context.models, request.model(), std::move(maker)));
  const SharedTensors shared = CollectShared(request, payloads);
  RETURN_IF_ERROR(CheckRequestId(request.request_id()));
  RETURN_IF_ERROR(CheckLayout(request.layout()));
  RETURN_IF_ERROR(ParseOwnFields(request, payloads, shared, context, compute));
  RETURN_IF_ERROR(ParseAttentionForm(request.attention_form(), request.attention_top_k(), compute));
  RETURN_IF_ERROR(ParseBias(shared, compute));
  RETURN_IF_ERROR(ParseGates(shared, compute));
  RETURN_IF_ERROR(ParseQueryRows(shared, compute));
  ASSIGN_OR_RETURN(compute.outputs.dtype,
                   CheckOutputDtype(request.output_dtype(), DefaultDtype(compute.input)));
  compute.request_id = request.request_id();
  return compute;
}

}  // namespace

absl::StatusOr<ComputeRequest> ParseRequest(const v1::AttendRequest& request,
                                            const RequestPayloads& payloads,
                                            const ServiceContext& context) {
  return ParseEither(request, payloads, context);
}

absl::StatusOr<ComputeRequest> ParseRequest(const v1::EncodeRequest& request,
                                            const RequestPayloads& payloads,
                                            const ServiceContext& context, EncodeOrigin origin) {
  return ParseEither(request, payloads, context, std::move(origin));
}

}  // namespace attendant::server
