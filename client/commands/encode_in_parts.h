// Encoding of one sequence in chunks over a stream, for models that support it.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/client.h"

namespace attendant::client {

// Returns INVALID_ARGUMENT unless the request has exactly one sequence and only outputs that chunks
// support.
absl::Status CheckInParts(const EncodeRequest& request);

// Sends the request, which CheckInParts must have accepted, in chunks of up to `tokens` tokens, and
// returns the response of the whole. The execution is the sum over all chunks.
absl::StatusOr<EncodeResult> EncodeInParts(const Client& client, const EncodeRequest& request,
                                           int64_t tokens, const CallOptions& call);

}  // namespace attendant::client
