// The fields that several requests share: checked, and put into a ComputeRequest.
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

// Makes this layer the only one of the span, whose model is there.
absl::Status ParseLayer(uint32_t layer, LayerSpan& span);

// Fills layout and input from rows of this width, hidden states or features.
absl::Status ParseRows(const WireTensor& rows, int64_t width, const SharedTensors& shared,
                       int64_t max_tokens, ComputeRequest& compute);

// Fills bias. The layout and the keys are there.
absl::Status ParseBias(const SharedTensors& shared, ComputeRequest& compute);

// Fill head_gates, where the span is there, and the rows of the hidden states that are returned,
// where the layout is there.
absl::Status ParseGates(const SharedTensors& shared, ComputeRequest& compute);
absl::Status ParseQueryRows(const SharedTensors& shared, ComputeRequest& compute);

// Fills the form of the attention's probabilities. Layers, and the layout, are there.
absl::Status ParseAttentionForm(v1::AttentionForm form, uint32_t top_k, ComputeRequest& compute);

}  // namespace attendant::server
