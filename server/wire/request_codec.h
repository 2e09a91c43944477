// Parser of request messages that leaves their tensor data where gRPC received it, instead of
// copying it.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "server/wire/payload.h"

namespace attendant::server {

// The `data` of one Tensor in a request, or one element of a field of repeated bytes or texts.
// `path` is the chain of field numbers from the message to that Tensor: {4} for
// AttendRequest.hidden_states, {2, 3} for EncodeStreamRequest.request.hidden_states; or to that
// field, with the element's index: {7, 0} for ModelInferRequest.raw_input_contents[0].
struct TensorPayload {
  std::vector<int> path;
  Payload data;
};

// The most elements of a field of repeated bytes or texts.
inline constexpr int64_t kMostRepeatedPayloads = 1024;

// The most submessages, texts and packed lists of a message that are told apart without looking
// into them. Each may be two bytes in the message, and takes a hundred in memory.
inline constexpr int64_t kMostHeadFields = 1024;

// Parses `buffer` into `request`, all but the `data` of its Tensor fields and its fields of
// repeated bytes and texts, and returns that data. Texts may be something else than UTF-8. A tensor
// has at most one entry: if its data was sent repeatedly, the last one wins, as in protobuf.
// Elements of repeated fields are in their order.
//
// The result agrees with request.ParseFromString for every message, whether its fields are out of
// order, unknown, repeated, merged or packed. This function walks only along the message's
// descriptor to find the tensor data; it has protobuf parse the rest, the head. Tensors in repeated
// fields and in oneofs belong to the head and are parsed with their data.
//
// Returns INVALID_ARGUMENT if the message is malformed, its head is larger than `max_head_bytes`
// or has too many fields, or a repeated field has too many elements. The content of
// `request` is then unspecified. Thread-safe.
absl::StatusOr<std::vector<TensorPayload>> ParseRequest(const grpc::ByteBuffer& buffer,
                                                        int64_t max_head_bytes,
                                                        google::protobuf::Message& request);

// Returns the data of the tensor at `path`, or null if the tensor is absent or has no data. The
// pointer is into `payloads`.
const Payload* FindPayload(const std::vector<TensorPayload>& payloads,
                           const std::vector<int>& path);

}  // namespace attendant::server
