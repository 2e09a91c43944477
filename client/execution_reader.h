// Reading the `execution` of a response without parsing its tensors.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "client/messages.h"
#include "client/prepared_request.h"

namespace attendant::client {

// Reads field number `field`, the `execution` of an AttendResponse or EncodeResponse. Skips all
// other fields, because parsing them would copy megabytes of tensors that a load generator does not
// need. Returns INTERNAL if the bytes are not a valid message.
absl::StatusOr<Execution> ReadExecution(grpc::ByteBuffer& answer, int field);

// Like ReadExecution, but also copies the bytes of all other fields.
absl::StatusOr<RawAnswer> ReadRawAnswer(grpc::ByteBuffer& answer, int field);

// An item of an EncodeStream: its id and its execution, or the item's own error.
struct StreamAnswer {
  uint64_t id = 0;
  absl::StatusOr<Execution> execution;
};
// Reads an EncodeStreamResponse in the same way.
absl::StatusOr<StreamAnswer> ReadStreamAnswer(grpc::ByteBuffer& answer);

}  // namespace attendant::client
