// Checks of the fields that AttendRequest and EncodeRequest share, and the way to those of either.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attendant/v1/encoder_service.pb.h"
#include "server/services/compute_request.h"
#include "server/services/request_validation.h"

namespace attendant::server {

absl::Status CheckRequestId(const std::string& request_id);
absl::Status CheckLayout(v1::Layout layout);

// What both requests say beside their input and outputs.
struct SharedTensors {
  std::string scope;  // before the names of lengths and attention_mask in messages
  absl::Span<const int64_t> lengths;
  std::optional<WireTensor> attention_mask;
  std::optional<WireTensor> attention_bias;
  absl::Span<const float> head_gates;
  absl::Span<const int64_t> query_rows;
  bool sequence_first = false;
};

// Float rows and which of them are kept.
struct TokenRows {
  TokenLayout layout;
  CheckedTensor tensor;
};

// Rows of `width` columns: [B, S, width] or [S, B, width], or [T, width] with lengths.
absl::StatusOr<TokenRows> CheckTokenRows(const WireTensor& rows, int64_t width,
                                         const SharedTensors& shared, int64_t max_tokens);

// Fills layout and input from rows of this width, hidden states or features.
absl::Status TakeRows(const WireTensor& rows, int64_t width, const SharedTensors& shared,
                      int64_t max_tokens, ComputeRequest& compute);

// Fills bias; the layout, and the memory if there is one, is there.
absl::Status TakeBias(const SharedTensors& shared, ComputeRequest& compute);

// Fills head_gates, of the span that is there, and query_tokens, of the layout that is there.
absl::Status TakeGates(const SharedTensors& shared, ComputeRequest& compute);
absl::Status TakeQueryRows(const SharedTensors& shared, ComputeRequest& compute);

// Fills the form of the attention's probabilities. Layers, and the layout, are there.
absl::Status TakeAttentionForm(v1::AttentionForm form, uint32_t top_k, ComputeRequest& compute);

// What a message has of its own: layers, input, outputs. Fills all of `compute` but model, bias,
// gates, query_tokens, request_id and output_dtype; the model is there.
absl::Status TakeOwnFields(const v1::AttendRequest& request, const RequestPayloads& payloads,
                           const SharedTensors& shared, const ValidationContext& context,
                           ComputeRequest& compute);
absl::Status TakeOwnFields(const v1::EncodeRequest& request, const RequestPayloads& payloads,
                           const SharedTensors& shared, const ValidationContext& context,
                           ComputeRequest& compute);

// Fills layers.
absl::Status TakeLayer(uint32_t layer, ComputeRequest& compute);

// Fills all of a PutMemoryRequest's; the model is there.
absl::Status TakeRegistration(const v1::PutMemoryRequest& request, const RequestPayloads& payloads,
                              const ValidationContext& context, ComputeRequest& compute);

// The shared fields of either message: both have the same names, with numbers of their own.
template <typename Request>
SharedTensors CollectShared(const Request& request, const RequestPayloads& payloads) {
  SharedTensors shared;
  shared.lengths =
      absl::MakeConstSpan(request.lengths().data(), static_cast<size_t>(request.lengths_size()));
  if (request.has_attention_mask()) {
    shared.attention_mask.emplace(payloads.Of("attention_mask", request.attention_mask(),
                                              Request::kAttentionMaskFieldNumber));
  }
  if (request.has_attention_bias()) {
    shared.attention_bias.emplace(payloads.Of("attention_bias", request.attention_bias(),
                                              Request::kAttentionBiasFieldNumber));
  }
  shared.head_gates = absl::MakeConstSpan(request.head_gates().data(),
                                          static_cast<size_t>(request.head_gates_size()));
  shared.query_rows = absl::MakeConstSpan(request.query_rows().data(),
                                          static_cast<size_t>(request.query_rows_size()));
  shared.sequence_first = request.layout() == v1::SEQUENCE_FIRST;
  return shared;
}

}  // namespace attendant::server
