// The fields that an AttendRequest or an EncodeRequest has of its own.
#pragma once

#include "absl/status/status.h"
#include "attendant/v1/encoder_service.pb.h"
#include "server/request/compute_request.h"
#include "server/request/service_context.h"
#include "server/request/shared_tensors.h"

namespace attendant::server {

// Fills `compute`, whose model is there, and its sequence if it is a chunk, except for bias, gates,
// the rows of its hidden states, the output's type and the request's id. Errors as those of
// ParseRequest.
absl::Status ParseOwnFields(const v1::AttendRequest& request, const RequestPayloads& payloads,
                            const SharedTensors& shared, const ServiceContext& context,
                            ComputeRequest& compute);
absl::Status ParseOwnFields(const v1::EncodeRequest& request, const RequestPayloads& payloads,
                            const SharedTensors& shared, const ServiceContext& context,
                            ComputeRequest& compute);

// Fills the outputs of an EncodeRequest, whose span is there, apart from those of ParseOwnFields'
// exceptions and from the tokens of prompts.
absl::Status ParseOutputs(const v1::EncodeRequest& request, const RequestPayloads& payloads,
                          ComputeRequest& compute);

}  // namespace attendant::server
