#include "server/request/parse_request.h"

#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/models/model_lookup.h"
#include "server/request/attention_bias.h"
#include "server/request/parse_fields.h"
#include "server/request/token_rows.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

constexpr size_t kMaxRequestIdBytes = 256;

absl::Status CheckRequestId(const std::string& request_id) {
  if (request_id.size() <= kMaxRequestIdBytes) return absl::OkStatus();
  return InvalidField("request_id", absl::StrCat("at most ", kMaxRequestIdBytes, " bytes"),
                      absl::StrCat(request_id.size()));
}

absl::Status CheckLayout(v1::Layout layout) {
  if (v1::Layout_IsValid(layout)) return absl::OkStatus();
  return InvalidField("layout", "a Layout value", absl::StrCat(static_cast<int>(layout)));
}

// The field by which a request asks for the attention of a layer.
const char* AttentionField(const ComputeRequest& compute) {
  if (!std::holds_alternative<AttendStage>(compute.operation)) return "attention_layers";
  return compute.outputs.attention.probabilities ? "return_attention_probabilities"
                                                 : "return_weighted_values";
}

// Checks that no sequence has more positions than attention that mixes keys was trained for.
absl::Status CheckMixedPositions(const ComputeRequest& compute) {
  const int64_t most = compute.description().layer.attention.linformer.positions;
  for (int64_t b = 0; most > 0 && b < compute.layout.sequences; ++b) {
    const absl::Span<const int32_t> positions = compute.layout.positions_of(b);
    if (positions.empty()) continue;
    const int64_t reach = positions.back() - positions.front() + 1;
    if (reach <= most) continue;
    return InvalidField(
        "attention_mask",
        absl::StrCat("sequences of at most ", most, " positions (the attention's trained length)"),
        absl::StrCat(reach, " in sequence ", b));
  }
  return absl::OkStatus();
}

// Fills bias. Requires the layout and the keys.
absl::Status ParseBias(const std::optional<WireTensor>& bias, ComputeRequest& compute) {
  RETURN_IF_ERROR(CheckMixedPositions(compute));
  const AttentionKind kind = compute.description().layer.attention.kind;
  if (!ScoresPairs(kind) && (bias || !compute.outputs.attention.layers.empty())) {
    return NotSupported(bias ? "attention_bias" : AttentionField(compute), "",
                        compute.span.model->name,
                        absl::StrCat(Name(kind), " attention does not score pairs of tokens"));
  }
  if (!bias) return absl::OkStatus();
  if (compute.bias) {
    return CannotCombine("attention_bias",
                         "texts of the task \"query\" (the model adds tokens to queries that "
                         "nothing attends to)");
  }
  ASSIGN_OR_RETURN(compute.bias,
                   CheckBias(*bias, compute.scores_shape(), compute.attends_cross_kv()));
  return absl::OkStatus();
}

// Fills head_gates. Requires the span.
absl::Status ParseGates(absl::Span<const float> gates, ComputeRequest& compute) {
  const int64_t heads = compute.description().layer.attention.heads;
  const int64_t count = static_cast<int64_t>(gates.size());
  if (count != 0 && count != heads && count != compute.span.layers * heads) {
    return InvalidField(
        "head_gates",
        absl::StrCat(heads, " numbers (one for each head)",
                     compute.span.layers == 1 ? ""
                                              : absl::StrCat(" or ", compute.span.layers * heads,
                                                             " (one for each head and layer)")),
        absl::StrCat(count));
  }
  for (int64_t i = 0; i < count; ++i) {
    if (gates[i] >= 0 && gates[i] <= 1) continue;
    return InvalidField(absl::StrCat("head_gates[", i, "]"), "a number from 0 to 1",
                        absl::StrCat(gates[i]));
  }
  compute.head_gates.assign(gates.begin(), gates.end());
  return absl::OkStatus();
}

// Fills the rows of hidden states to return. Requires the layout.
absl::Status ParseQueryRows(absl::Span<const int64_t> rows, ComputeRequest& compute) {
  if (rows.empty()) return absl::OkStatus();
  if (!compute.outputs.hidden_states) {
    return CannotCombine("query_rows", "omit_hidden_states");
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t row = rows[i];
    if (row >= 0 && row < compute.layout.rows) continue;
    return InvalidField(absl::StrCat("query_rows[", i, "]"),
                        absl::StrCat("0..", compute.layout.rows - 1), absl::StrCat(row));
  }
  compute.outputs.hidden_tokens = TokensOfRows(compute.layout, rows);
  return absl::OkStatus();
}

// Fills the form of the attention probabilities. Requires the layers and the layout.
absl::Status ParseAttentionForm(v1::AttentionForm form, uint32_t top_k, ComputeRequest& compute) {
  if (!v1::AttentionForm_IsValid(form)) {
    return InvalidField("attention_form", "an AttentionForm value",
                        absl::StrCat(static_cast<int>(form)));
  }
  const int64_t most = form == v1::TOP_KEYS ? compute.key_layout().padded_length : 0;
  const int64_t least = form == v1::TOP_KEYS ? 1 : 0;
  if (top_k < least || top_k > most) {
    if (form != v1::TOP_KEYS) return MissingFor("attention_top_k", "attention_form TOP_KEYS");
    return InvalidField("attention_top_k", absl::StrCat(least, "..", most), absl::StrCat(top_k));
  }
  AttentionOutput& attention = compute.outputs.attention;
  if (attention.weighted_values && compute.attends_cross_kv()) {
    return CannotCombine("return_weighted_values", "memory or memory_handle");
  }
  attention.form = form;
  attention.top_k = top_k;
  for (const int64_t layer : attention.layers) {
    if (compute.description().heads_at(layer) > 0) continue;
    return NotSupported(AttentionField(compute), absl::StrCat("layer ", layer),
                        compute.span.model->name, "the layer's heads are all pruned");
  }
  return absl::OkStatus();
}

// Outputs have the type of the input's numbers.
DataType DefaultDtype(const Input& input) {
  if (const auto* features = std::get_if<TokenRows>(&input)) return features->tensor.dtype;
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

// Fills `compute`, in which the client and, for a chunk, the keys are set.
template <typename Request>
absl::StatusOr<ComputeRequest> ParseEither(const Request& request, const RequestPayloads& payloads,
                                           const ServiceContext& context,
                                           ComputeRequest compute = {}) {
  ASSIGN_OR_RETURN(auto maker, MakerOf(request, compute, context));
  ASSIGN_OR_RETURN(compute.span.model,
                   FindModel(context.models, request.model(), std::move(maker)));
  RETURN_IF_ERROR(CheckRequestId(request.request_id()));
  RETURN_IF_ERROR(CheckLayout(request.layout()));
  const TokenFields fields =
      TokenFieldsOf(request, payloads,
                    {.sequence_first = request.layout() == v1::SEQUENCE_FIRST,
                     .max_tokens = context.limits.max_request_tokens});
  RETURN_IF_ERROR(ParseOwnFields(request, payloads, fields, context, compute));
  RETURN_IF_ERROR(ParseAttentionForm(request.attention_form(), request.attention_top_k(), compute));
  std::optional<WireTensor> bias;
  if (request.has_attention_bias()) {
    bias.emplace(payloads.Of("attention_bias", request.attention_bias(),
                             Request::kAttentionBiasFieldNumber));
  }
  RETURN_IF_ERROR(ParseBias(bias, compute));
  RETURN_IF_ERROR(ParseGates(request.head_gates(), compute));
  RETURN_IF_ERROR(ParseQueryRows(request.query_rows(), compute));
  ASSIGN_OR_RETURN(compute.outputs.dtype,
                   CheckOutputDtype(request.output_dtype(), DefaultDtype(compute.input)));
  compute.request_id = request.request_id();
  return compute;
}

absl::StatusOr<absl::Duration> CheckAge(int64_t time_to_live_ms, absl::Duration max_age) {
  const absl::Duration age = absl::Milliseconds(time_to_live_ms);
  if (time_to_live_ms == 0) return max_age;
  if (time_to_live_ms > 0 && age <= max_age) return age;
  return InvalidField("time_to_live_ms", absl::StrCat("0..", absl::ToInt64Milliseconds(max_age)),
                      absl::StrCat(time_to_live_ms));
}

}  // namespace

absl::Status ParseLayer(uint32_t layer, LayerSpan& span) {
  const int64_t layers = span.description().layers;
  if (layers == 0) {
    return NotSupported("layer", "", span.model->name, "it has only embeddings; use Encode");
  }
  if (layer >= layers) {
    return InvalidField("layer", absl::StrCat("0..", layers - 1), absl::StrCat(layer));
  }
  span.first_layer = layer;
  span.layers = 1;
  return absl::OkStatus();
}

absl::Status ParseRows(const WireTensor& rows, int64_t width, const TokenFields& fields,
                       ComputeRequest& compute) {
  ASSIGN_OR_RETURN(TokenRows taken, CheckTokenRows(rows, width, fields));
  compute.layout = std::move(taken.layout);
  compute.input = std::move(taken.tensor);
  return absl::OkStatus();
}

absl::StatusOr<ComputeRequest> ParseRequest(const v1::AttendRequest& request,
                                            const RequestPayloads& payloads,
                                            const ServiceContext& context) {
  return ParseEither(request, payloads, context);
}

absl::StatusOr<ComputeRequest> ParseRequest(const v1::EncodeRequest& request,
                                            const RequestPayloads& payloads,
                                            const ServiceContext& context, std::string client,
                                            std::shared_ptr<StreamSequence> sequence) {
  ComputeRequest compute;
  compute.client = std::move(client);
  if (sequence != nullptr) compute.keys = std::move(sequence);
  return ParseEither(request, payloads, context, std::move(compute));
}

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
