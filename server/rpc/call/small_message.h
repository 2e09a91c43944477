// Parser of request messages that hold hardly more than a name.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

#include "absl/status/status.h"

namespace attendant::server {

// The names of a message in refusals.
struct SmallMessageNames {
  const char* kind;     // "a health request"
  const char* message;  // "the request"
};

// Parses `bytes` into `message`. Returns INVALID_ARGUMENT if they are malformed or more than 4096.
absl::Status ParseSmallMessage(const grpc::ByteBuffer& bytes, const SmallMessageNames& names,
                               google::protobuf::Message& message);

}  // namespace attendant::server
