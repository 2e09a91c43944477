// Tensors and lists with the same names in several requests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/types/span.h"
#include "attendant/v1/encoder_service.pb.h"
#include "server/tensors/tensor_check.h"

namespace attendant::server {

// Fields of both requests that are neither input nor output.
struct SharedTensors {
  std::string scope;  // prefix of lengths and attention_mask in messages
  absl::Span<const int64_t> lengths;
  std::optional<WireTensor> attention_mask;
  std::optional<WireTensor> attention_bias;
  absl::Span<const float> head_gates;
  absl::Span<const int64_t> query_rows;
  bool sequence_first = false;
  const char* token_limit = "--max-request-tokens";  // see TokenClaims::limit
};

// Collects the shared fields of either message. Both use the same names, with their own field
// numbers.
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
