// The fields that an AttendRequest has of its own.
#pragma once

#include "absl/status/status.h"
#include "attendant/v1/encoder_service.pb.h"
#include "server/request/compute_request.h"
#include "server/request/shared_tensors.h"
#include "server/request/validation_context.h"

namespace attendant::server {

// Fills the layers, input and outputs of `compute`: all but model, bias, gates, query_tokens,
// request_id and output_dtype. The model is there. INVALID_ARGUMENT as ParseRequest.
absl::Status ParseOwnFields(const v1::AttendRequest& request, const RequestPayloads& payloads,
                            const SharedTensors& shared, const ValidationContext& context,
                            ComputeRequest& compute);

}  // namespace attendant::server
