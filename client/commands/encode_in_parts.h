// One sequence sent in parts over a stream, for models that take it so.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/client.h"

namespace attendant::client {

// INVALID_ARGUMENT if the request is not of one sequence, or asks for what no part can answer.
absl::Status CheckInParts(const EncodeRequest& request);

// Sends the request, which CheckInParts has passed, in parts of up to `tokens` tokens, and answers
// as if it had been sent as a whole. The execution is that of all parts together.
absl::StatusOr<EncodeResult> EncodeInParts(const Client& client, const EncodeRequest& request,
                                           int64_t tokens, const CallOptions& call);

}  // namespace attendant::client
