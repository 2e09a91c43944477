// The fields of a PutMemoryRequest.
#pragma once

#include "absl/status/status.h"
#include "attendant/v1/encoder_service.pb.h"
#include "server/request/compute_request.h"
#include "server/request/validation_context.h"

namespace attendant::server {

// Fills all of `compute`; the model is there.
absl::Status ParseRegistration(const v1::PutMemoryRequest& request, const RequestPayloads& payloads,
                               const ValidationContext& context, ComputeRequest& compute);

}  // namespace attendant::server
