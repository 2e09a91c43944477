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

absl::Status TakeRows(const WireTensor& rows, int64_t width, const SharedTensors& shared,
                      int64_t max_tokens, ComputeRequest& compute) {
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
  absl::StatusOr<TokenLayout> layout = LayOutTokens(
      {rows.field, shape.first(shape.size() - 1), shared.lengths, shared.attention_mask},
      max_tokens);
  if (!layout.ok()) return layout.status();
  compute.layout = *std::move(layout);
  compute.input = *std::move(tensor);
  return absl::OkStatus();
}

absl::Status TakeBias(const SharedTensors& shared, ComputeRequest& compute) {
  if (!shared.attention_bias) return absl::OkStatus();
  absl::StatusOr<CheckedTensor> bias =
      CheckBias(*shared.attention_bias, compute.layout, compute.description().layer.heads);
  if (!bias.ok()) return bias.status();
  compute.bias = *std::move(bias);
  return absl::OkStatus();
}

}  // namespace attendant::server
