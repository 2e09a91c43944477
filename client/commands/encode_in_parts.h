// Encoding of one sequence in parts over a stream, for models that can take it so.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/client.h"

namespace attendant::client {

// Returns INVALID_ARGUMENT if the request does not have exactly one sequence, or asks for something
// that parts cannot answer.
absl::Status CheckInParts(const EncodeRequest& request);

// Sends the request, which CheckInParts must have accepted, in parts of up to `tokens` tokens, and
// returns the answer that it would have as a whole. The execution is that of all parts together.
absl::StatusOr<EncodeResult> EncodeInParts(const Client& client, const EncodeRequest& request,
                                           int64_t tokens, const CallOptions& call);

}  // namespace attendant::client
