// Converts absl::Status to grpc::Status, and formats errors about requests.
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

// INVALID_ARGUMENT "<field>: <value> not supported by model "<model>": <why>". If `value` is empty,
// the model does not support the field at all.
absl::Status NotSupported(const std::string& field, const std::string& value,
                          const std::string& model, const std::string& why);

// INVALID_ARGUMENT "<field>: cannot be combined with <other>".
absl::Status CannotCombine(const std::string& field, const std::string& other);

// INVALID_ARGUMENT "<field>: requires <other>".
absl::Status MissingFor(const std::string& field, const std::string& other);

// NOT_FOUND "<field>: not found (<why>); <fix>".
absl::Status NotFound(const std::string& field, const std::string& why, const std::string& fix);

// Returns text from a client for use in a message or log line: quoted, escaped, cut to 128 bytes.
std::string Quote(const std::string& text);

// Returns "[2, 3, 4]"; only the first dimensions of a shape with very many.
std::string ShapeText(absl::Span<const int64_t> shape);

}  // namespace attendant::server
