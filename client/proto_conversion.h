// Conversions between the library's plain structs and the protocol's messages. Tensor bytes are
// moved, not copied.
#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "attendant/v1/encoder_service.pb.h"
#include "client/messages.h"

namespace attendant::client {

v1::AttendRequest ToProto(AttendRequest request);
v1::EncodeRequest ToProto(EncodeRequest request);
v1::PutMemoryRequest ToProto(PutMemoryRequest request);
v1::TokenizeRequest ToProto(TokenizeRequest request);

// These return INTERNAL if the bytes of a tensor do not match its shape and type, or if the lists
// of a text's tokens differ in length.
absl::StatusOr<AttendResult> FromProto(v1::AttendResponse response);
absl::StatusOr<EncodeResult> FromProto(v1::EncodeResponse response);
absl::StatusOr<TokenizeResult> FromProto(v1::TokenizeResponse response);
RegisteredMemory FromProto(v1::PutMemoryResponse response);
Execution FromProto(const v1::Execution& execution);

absl::Status FromGrpc(const grpc::Status& status);

// Returns the status of an error on a stream; never OK.
absl::Status FromProto(const v1::Error& error);

}  // namespace attendant::client
