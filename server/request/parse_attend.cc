#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/request/parse_fields.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

// Fills operation.
absl::Status ParseStage(v1::AttendStage stage, ComputeRequest& compute) {
  const LayerShape& layer = compute.layer_shape();
  switch (stage) {
    case v1::CONTEXT:
      if (layer.attention.heads == 0) {
        return NotSupported("stage", "CONTEXT", compute.span.model->name,
                            "the layer's heads are all pruned; use PROJECTED or BLOCK");
      }
      compute.operation = AttendStage::kContext;
      return absl::OkStatus();
    case v1::PROJECTED:
      if (!layer.attention.has_output_projection) {
        return NotSupported("stage", "PROJECTED", compute.span.model->name,
                            "it has no output projection; use CONTEXT or BLOCK");
      }
      compute.operation = AttendStage::kProjected;
      return absl::OkStatus();
    case v1::BLOCK:
      compute.operation = AttendStage::kBlock;
      return absl::OkStatus();
    default:
      return InvalidField("stage", "CONTEXT, PROJECTED or BLOCK",
                          absl::StrCat(static_cast<int>(stage)));
  }
}

absl::Status CheckSequences(const ComputeRequest& compute) {
  const int64_t sequences = compute.layout.sequences, given = compute.key_layout().sequences;
  if (given == 1 || given == sequences) return absl::OkStatus();
  return InvalidField("memory", absl::StrCat("1 or B = ", sequences, " sequences"),
                      absl::StrCat(given));
}

absl::Status ParseRegistered(const std::string& handle, CrossKvStore& store,
                             ComputeRequest& compute) {
  ASSIGN_OR_RETURN(auto found, store.Find(handle));
  const CrossKvOrigin& origin = found->origin();
  if (origin.model != compute.span.model || origin.layer != compute.span.first_layer) {
    return InvalidField("memory_handle",
                        absl::StrCat("a memory of model ", compute.span.model->name, ", layer ",
                                     compute.span.first_layer),
                        absl::StrCat("model ", origin.model->name, ", layer ", origin.layer));
  }
  compute.keys = std::move(found);
  return CheckSequences(compute);
}

// Fills keys; model, layer and hidden states are there.
absl::Status ParseKeys(const v1::AttendRequest& request, const RequestPayloads& payloads,
                       const ServiceContext& context, ComputeRequest& compute) {
  const LayerShape& layer = compute.layer_shape();
  if (!request.memory_handle().empty()) {
    if (request.has_memory()) return CannotCombine("memory_handle", "memory; send one of them");
    return ParseRegistered(request.memory_handle(), context.cross_kv, compute);
  }
  if (!request.has_memory()) return CheckNeedsNoCrossKv(layer);
  ASSIGN_OR_RETURN(
      compute.keys,
      CheckCrossKvRows(request.memory(), payloads.Inside(v1::AttendRequest::kMemoryFieldNumber),
                       layer,
                       {.sequence_first = request.layout() == v1::SEQUENCE_FIRST,
                        .max_tokens = context.limits.max_request_tokens - compute.layout.rows,
                        .limit = "--max-request-tokens minus the rows of hidden_states"}));
  return CheckSequences(compute);
}

}  // namespace

absl::Status ParseOwnFields(const v1::AttendRequest& request, const RequestPayloads& payloads,
                            const TokenFields& fields, const ServiceContext& context,
                            ComputeRequest& compute) {
  RETURN_IF_ERROR(ParseLayer(request.layer(), compute.span));
  RETURN_IF_ERROR(ParseStage(request.stage(), compute));
  if (!request.has_hidden_states()) return InvalidField("hidden_states", "a tensor", "none");
  compute.outputs.hidden_states = true;
  AttentionOutput& attention = compute.outputs.attention;
  attention.probabilities = request.return_attention_probabilities();
  attention.weighted_values = request.return_weighted_values();
  if (attention.probabilities || attention.weighted_values) {
    attention.layers = {compute.span.first_layer};
  }
  RETURN_IF_ERROR(ParseRows(payloads.Of("hidden_states", request.hidden_states(),
                                        v1::AttendRequest::kHiddenStatesFieldNumber),
                            compute.description().layer.hidden_size, fields, compute));
  return ParseKeys(request, payloads, context, compute);
}

}  // namespace attendant::server
