// The content of a PreparedRequest.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <string>

#include "client/prepared_request.h"

namespace attendant::client {

struct PreparedRequest::Wire {
  std::string method;
  int execution_field;  // field number of `execution` in the response; 0 if it has none
  grpc::ByteBuffer message;
};

}  // namespace attendant::client
