// From a parsed AttendRequest or EncodeRequest to what is to be computed: every rule of
// encoder_service.proto's field comments.
#pragma once

#include "absl/status/statusor.h"
#include "attendant/v1/encoder_service.pb.h"
#include "server/request/compute_request.h"
#include "server/request/validation_context.h"

namespace attendant::server {

// NOT_FOUND: no such model or handle of registered keys and values. INVALID_ARGUMENT: names the
// field, what was expected and what came.
absl::StatusOr<ComputeRequest> ParseRequest(const v1::AttendRequest& request,
                                            const RequestPayloads& payloads,
                                            const ValidationContext& context);
absl::StatusOr<ComputeRequest> ParseRequest(const v1::EncodeRequest& request,
                                            const RequestPayloads& payloads,
                                            const ValidationContext& context);

}  // namespace attendant::server
