// The content of a PreparedRequest.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include "client/prepared_request.h"

namespace attendant::client {

struct PreparedRequest::Wire {
  const char* method;
  int execution_field;  // number of `execution` in the answer
  grpc::ByteBuffer message;
};

}  // namespace attendant::client
