// Reads how a request was computed out of an answer, past the tensors.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "client/messages.h"

namespace attendant::client {

// `field` is the number of `execution` in the answer's message. The other fields are skipped where
// they lie, since parsing them would copy megabytes of tensor that a load generator does not look
// at. INTERNAL if the bytes are no message.
absl::StatusOr<Execution> ReadExecution(grpc::ByteBuffer& answer, int field);

// Reads an EncodeStreamResponse likewise; `execution` is the item's error if it has one.
struct StreamAnswer {
  uint64_t id = 0;
  absl::StatusOr<Execution> execution;
};
absl::StatusOr<StreamAnswer> ReadStreamAnswer(grpc::ByteBuffer& answer);

}  // namespace attendant::client
