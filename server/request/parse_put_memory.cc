#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/models/model_lookup.h"
#include "server/request/parse_fields.h"
#include "server/request/parse_request.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

absl::StatusOr<absl::Duration> CheckAge(int64_t time_to_live_ms, absl::Duration max_age) {
  const absl::Duration age = absl::Milliseconds(time_to_live_ms);
  if (time_to_live_ms == 0) return max_age;
  if (time_to_live_ms > 0 && age <= max_age) return age;
  return InvalidField("time_to_live_ms", absl::StrCat("0..", absl::ToInt64Milliseconds(max_age)),
                      absl::StrCat(time_to_live_ms));
}

}  // namespace

absl::StatusOr<ComputeRequest> ParseRequest(const v1::PutMemoryRequest& request,
                                            const RequestPayloads& payloads,
                                            const ServiceContext& context) {
  ASSIGN_OR_RETURN(auto model, FindModel(context.models, request.model()));
  LayerSpan span{std::move(model)};
  RETURN_IF_ERROR(CheckRequestId(request.request_id()));
  RETURN_IF_ERROR(CheckLayout(request.layout()));
  RETURN_IF_ERROR(ParseLayer(request.layer(), span));
  ASSIGN_OR_RETURN(const absl::Duration age,
                   CheckAge(request.time_to_live_ms(), context.cross_kv.max_age()));
  if (!request.has_memory()) return InvalidField("memory", "a memory", "none");
  ASSIGN_OR_RETURN(
      CrossKvRows rows,
      CheckCrossKvRows(request.memory(), payloads.Inside(v1::PutMemoryRequest::kMemoryFieldNumber),
                       span.description().layer_at(span.first_layer),
                       {.sequence_first = request.layout() == v1::SEQUENCE_FIRST,
                        .max_tokens = context.limits.max_request_tokens}));
  ASSIGN_OR_RETURN(auto room,
                   context.cross_kv.Reserve({span.model, span.first_layer, rows.layout}));
  ComputeRequest compute;
  compute.span = std::move(span);
  compute.operation = RegisterMemory{std::move(room), age};
  compute.layout.sequences = 1;
  compute.layout.cu_seqlens = {0, 0};
  compute.keys = std::move(rows);
  compute.request_id = request.request_id();
  return compute;
}

}  // namespace attendant::server
