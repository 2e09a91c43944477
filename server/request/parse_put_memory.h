// From a parsed PutMemoryRequest to what is to be registered.
#pragma once

#include "absl/status/statusor.h"
#include "attendant/v1/encoder_service.pb.h"
#include "server/request/registration_request.h"
#include "server/request/validation_context.h"

namespace attendant::server {

// Errors as those of the other requests (parse_request.h). RESOURCE_EXHAUSTED also: the keys and
// values do not fit with those that are kept.
absl::StatusOr<RegistrationRequest> ParseRequest(const v1::PutMemoryRequest& request,
                                                 const RequestPayloads& payloads,
                                                 const ValidationContext& context);

}  // namespace attendant::server
