// From a parsed request to what is to be computed: every rule of encoder_service.proto's field
// comments.
#pragma once

#include "absl/status/statusor.h"
#include "attendant/v1/encoder_service.pb.h"
#include "server/services/compute_request.h"

namespace attendant::server {

// What a request is checked against.
struct ValidationContext {
  const ServedModels& models;
  const ServiceLimits& limits;
  MemoryStore& memories;
  const StreamSequence* sequence = nullptr;  // that the request is a part of; or none
};

// NOT_FOUND: no such model or registered memory. INVALID_ARGUMENT: names the field, what was
// expected and what came.
absl::StatusOr<ComputeRequest> Validate(const v1::AttendRequest& request,
                                        const RequestPayloads& payloads,
                                        const ValidationContext& context);
absl::StatusOr<ComputeRequest> Validate(const v1::EncodeRequest& request,
                                        const RequestPayloads& payloads,
                                        const ValidationContext& context);

// RESOURCE_EXHAUSTED also: the memory does not fit beside those that are kept.
absl::StatusOr<ComputeRequest> Validate(const v1::PutMemoryRequest& request,
                                        const RequestPayloads& payloads,
                                        const ValidationContext& context);

}  // namespace attendant::server
