// Parsers of the fields that several requests share.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "attendant/v1/encoder_service.pb.h"
#include "server/request/compute_request.h"
#include "server/request/shared_tensors.h"

namespace attendant::server {

absl::Status CheckRequestId(const std::string& request_id);
absl::Status CheckLayout(v1::Layout layout);

// Makes `layer` the span's only layer. The model must be set.
absl::Status ParseLayer(uint32_t layer, LayerSpan& span);

// Fills layout and input from hidden states or features, rows of `width` columns.
absl::Status ParseRows(const WireTensor& rows, int64_t width, const SharedTensors& shared,
                       int64_t max_tokens, ComputeRequest& compute);

// Fills bias. The layout and the keys must be set.
absl::Status ParseBias(const SharedTensors& shared, ComputeRequest& compute);

// ParseGates fills head_gates and requires the span; ParseQueryRows fills the rows of hidden states
// to return and requires the layout.
absl::Status ParseGates(const SharedTensors& shared, ComputeRequest& compute);
absl::Status ParseQueryRows(const SharedTensors& shared, ComputeRequest& compute);

// Fills the form of the attention probabilities. The layers and the layout must be set.
absl::Status ParseAttentionForm(v1::AttentionForm form, uint32_t top_k, ComputeRequest& compute);

}  // namespace attendant::server
