// Parsers of the fields that only an AttendRequest or only an EncodeRequest has.
#pragma once

#include "absl/status/status.h"
#include "attendant/v1/encoder_service.pb.h"
#include "server/request/compute_request.h"
#include "server/request/service_context.h"
#include "server/request/shared_tensors.h"

namespace attendant::server {

// Fills `compute` except for bias, gates, rows of hidden states to return, output type and request
// id. The model, and the sequence of a chunk, must be set. Returns the errors of ParseRequest.
absl::Status ParseOwnFields(const v1::AttendRequest& request, const RequestPayloads& payloads,
                            const SharedTensors& shared, const ServiceContext& context,
                            ComputeRequest& compute);
absl::Status ParseOwnFields(const v1::EncodeRequest& request, const RequestPayloads& payloads,
                            const SharedTensors& shared, const ServiceContext& context,
                            ComputeRequest& compute);

// Fills the outputs of an EncodeRequest, except for those that ParseOwnFields excludes and for
// prompt tokens. The span must be set.
absl::Status ParseOutputs(const v1::EncodeRequest& request, const RequestPayloads& payloads,
                          ComputeRequest& compute);

}  // namespace attendant::server
