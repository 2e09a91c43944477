// Conversion of the engine's status to gRPC's, and the wording of errors about requests.
#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace attendant::server {

// The codes of both have the same numbers and meaning.
grpc::Status ToGrpcStatus(const absl::Status& status);

// INVALID_ARGUMENT "<field>: expected <expected>; got <got>".
absl::Status InvalidField(const std::string& field, const std::string& expected,
                          const std::string& got);

// Text from a client as it may appear in a message or a log line: quoted, escaped, cut to 128
// bytes.
std::string Quote(const std::string& text);

// "[2, 3, 4]"; of a shape with very many dimensions, the first ones.
std::string ShapeText(absl::Span<const int64_t> shape);

}  // namespace attendant::server
