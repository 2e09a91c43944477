// Parser of request messages that leaves tensor data in gRPC's slices instead of copying it.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "server/wire/payload.h"

namespace attendant::server {

// The `data` of the Tensors in a request, and the elements of its repeated bytes and string fields,
// by path. That is the chain of field numbers from the message to the Tensor: {4} for
// AttendRequest.hidden_states, {2, 3} for EncodeStreamRequest.request.hidden_states; or to the
// field, with the element's index: {7, 0} for ModelInferRequest.raw_input_contents[0].
using PayloadsByPath = std::map<std::vector<int>, Payload>;

// The maximum of elements in a repeated bytes or string field. If there are more, callers get one
// more, which they refuse by the field's name.
inline constexpr int64_t kMostRepeatedPayloads = 1024;

// The maximum of submessages, strings and packed lists in a message, counted without parsing them.
// Each may take two bytes in the message, and a hundred in memory.
inline constexpr int64_t kMostHeadFields = 1024;

// Parses `buffer` into `request`, except for the `data` of Tensor fields and for repeated bytes and
// string fields, and returns those. Strings are not checked for UTF-8. A tensor has at most one
// entry: if its data was sent repeatedly, the last one wins, as in protobuf. Elements of repeated
// fields keep their order.
//
// The result agrees with request.ParseFromString for every message that has no more elements in a
// field, even if fields are out of order, unknown, repeated, merged or packed. This function
// follows only the message's descriptor to find the tensor data, and lets protobuf parse the rest,
// the head. Tensors in repeated fields and oneofs belong to the head and are parsed with their
// data.
//
// Returns INVALID_ARGUMENT if the message is malformed, its head is larger than `max_head_bytes` or
// has too many fields; `request` is then unspecified. Thread-safe.
absl::StatusOr<PayloadsByPath> ParseRequest(const grpc::ByteBuffer& buffer, int64_t max_head_bytes,
                                            google::protobuf::Message& request);

}  // namespace attendant::server
