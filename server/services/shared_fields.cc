#include "server/services/shared_fields.h"

#include "absl/strings/str_cat.h"
#include "server/services/attention_bias.h"
#include "server/services/status_mapping.h"

namespace attendant::server {
namespace {

constexpr size_t kMaxRequestIdBytes = 256;

}  // namespace

absl::Status CheckRequestId(const std::string& request_id) {
  if (request_id.size() <= kMaxRequestIdBytes) return absl::OkStatus();
  return Refusal("request_id", absl::StrCat("at most ", kMaxRequestIdBytes, " bytes"),
                 absl::StrCat(request_id.size()));
}

absl::StatusOr<TokenRows> CheckTokenRows(const WireTensor& rows, int64_t width,
                                         const SharedTensors& shared, int64_t max_tokens) {
  const auto& dims = rows.head.shape();
  const absl::Span<const int64_t> shape(dims.data(), static_cast<size_t>(dims.size()));
  const bool rank_fits = shape.size() == 3 || shape.size() == 2;
  if (!rank_fits || shape.back() != width) {
    return Refusal(rows.field + ".shape",
                   absl::StrCat("[B, S, ", width, "], or [T, ", width, "] with lengths"),
                   ShapeText(shape));
  }
  absl::StatusOr<CheckedTensor> tensor = CheckTensor(rows, ElementKind::kFloat);
  if (!tensor.ok()) return tensor.status();
  absl::StatusOr<TokenLayout> layout =
      LayOutTokens({rows.field, shape.first(shape.size() - 1), shared.lengths,
                    shared.attention_mask, shared.scope},
                   max_tokens);
  if (!layout.ok()) return layout.status();
  return TokenRows{*std::move(layout), *std::move(tensor)};
}

absl::Status TakeRows(const WireTensor& rows, int64_t width, const SharedTensors& shared,
                      int64_t max_tokens, ComputeRequest& compute) {
  absl::StatusOr<TokenRows> taken = CheckTokenRows(rows, width, shared, max_tokens);
  if (!taken.ok()) return taken.status();
  compute.layout = std::move(taken->layout);
  compute.input = std::move(taken->tensor);
  return absl::OkStatus();
}

namespace {

// Attention that mixes the keys of so many places has none for others.
absl::Status CheckPlaces(const ComputeRequest& compute) {
  const int64_t places = compute.description().layer.mixed_places;
  for (int64_t b = 0; places > 0 && b < compute.layout.sequences; ++b) {
    const absl::Span<const int32_t> positions = compute.layout.positions_of(b);
    if (positions.empty()) continue;
    const int64_t reach = positions.back() - positions.front() + 1;
    if (reach <= places) continue;
    return Refusal("attention_mask",
                   absl::StrCat("sequences of at most ", places,
                                " positions, as the attention was "
                                "trained for"),
                   absl::StrCat(reach, " in sequence ", b));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status TakeBias(const SharedTensors& shared, ComputeRequest& compute) {
  if (absl::Status status = CheckPlaces(compute); !status.ok()) return status;
  const AttentionKind kind = compute.description().layer.attention;
  if (!ScoresPairs(kind) && (shared.attention_bias || !compute.attention_layers.empty())) {
    return Refusal(shared.attention_bias ? "attention_bias" : "attention probabilities",
                   absl::StrCat("none, as ", Name(kind), " attention has no scores of pairs"),
                   shared.attention_bias ? "a tensor" : "a layer");
  }
  if (!shared.attention_bias) return absl::OkStatus();
  absl::StatusOr<CheckedTensor> bias =
      CheckBias(*shared.attention_bias, compute.scores_shape(), compute.attends_memory());
  if (!bias.ok()) return bias.status();
  compute.bias = *std::move(bias);
  return absl::OkStatus();
}

}  // namespace attendant::server
