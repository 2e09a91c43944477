// Functions that read how a request was computed from the bytes of an answer, without its tensors.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "client/messages.h"
#include "client/prepared_request.h"

namespace attendant::client {

// Reads field number `field`, the `execution` of an AttendResponse or EncodeResponse. All other
// fields are skipped, because parsing them would copy megabytes of tensors that a load generator
// does not look at. INTERNAL: the bytes are not a valid message.
absl::StatusOr<Execution> ReadExecution(grpc::ByteBuffer& answer, int field);

// Reads `execution` as ReadExecution does, and copies all other fields as they are.
absl::StatusOr<RawAnswer> ReadRawAnswer(grpc::ByteBuffer& answer, int field);

// An item of an EncodeStream: its id and its execution, or the item's own error.
struct StreamAnswer {
  uint64_t id = 0;
  absl::StatusOr<Execution> execution;
};
// Reads an EncodeStreamResponse in the same way.
absl::StatusOr<StreamAnswer> ReadStreamAnswer(grpc::ByteBuffer& answer);

}  // namespace attendant::client
