#include "absl/strings/str_cat.h"
#include "server/services/shared_fields.h"
#include "server/services/status_mapping.h"

namespace attendant::server {
namespace {

// Fills operation and width.
absl::Status TakeStage(v1::AttendStage stage, ComputeRequest& compute) {
  const LayerShape& layer = compute.description().layer;
  switch (stage) {
    case v1::CONTEXT:
      compute.operation = Operation::kAttendContext;
      compute.width = layer.context_width();
      return absl::OkStatus();
    case v1::PROJECTED:
      if (!layer.has_output_projection) {
        return Refusal("stage", "CONTEXT or BLOCK, as the model has no output projection",
                       "PROJECTED");
      }
      compute.operation = Operation::kAttendProjected;
      compute.width = layer.attention_width();
      return absl::OkStatus();
    case v1::BLOCK:
      compute.operation = Operation::kAttendBlock;
      compute.width = layer.attention_width();
      return absl::OkStatus();
    default:
      return Refusal("stage", "CONTEXT, PROJECTED or BLOCK", absl::StrCat(static_cast<int>(stage)));
  }
}

absl::Status TakeLayer(uint32_t layer, ComputeRequest& compute) {
  if (layer >= compute.description().layers) {
    return Refusal("layer", absl::StrCat("0..", compute.description().layers - 1),
                   absl::StrCat(layer));
  }
  compute.first_layer = layer;
  compute.layers = 1;
  return absl::OkStatus();
}

}  // namespace

absl::Status TakeOwnFields(const v1::AttendRequest& request, const RequestPayloads& payloads,
                           const SharedTensors& shared, int64_t max_tokens,
                           ComputeRequest& compute) {
  absl::Status status = TakeLayer(request.layer(), compute);
  status.Update(TakeStage(request.stage(), compute));
  if (!status.ok()) return status;
  if (!request.has_hidden_states()) return Refusal("hidden_states", "a tensor", "none");
  if (request.return_attention_probabilities()) compute.attention_layers = {compute.first_layer};
  return TakeRows(payloads.Of("hidden_states", request.hidden_states(),
                              v1::AttendRequest::kHiddenStatesFieldNumber),
                  compute.description().layer.hidden_size, shared, max_tokens, compute);
}

}  // namespace attendant::server
