// FindDisagreement, which compares the slice codec with the generated parser.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

#include <string>

#include "server/wire/payload.h"

namespace attendant::server {

std::string ToString(const Payload& payload);

// Parses `bytes`, a message of the type of `prototype`, with the generated parser, and `buffer`,
// which has the same bytes in slices, with ParseRequest. Returns an empty string if both refuse it
// or both read the same fields, and else a description of the difference.
std::string FindDisagreement(const google::protobuf::Message& prototype, const std::string& bytes,
                             const grpc::ByteBuffer& buffer);

}  // namespace attendant::server
