// Parser of request messages that hold little more than a name.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

#include "absl/status/status.h"

namespace attendant::server {

// Parses `bytes` into `message`, which errors call `name`. Returns INVALID_ARGUMENT if they are
// malformed or more than 4096.
absl::Status ParseSmallMessage(const grpc::ByteBuffer& bytes, const char* name,
                               google::protobuf::Message& message);

}  // namespace attendant::server
