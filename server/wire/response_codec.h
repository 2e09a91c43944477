// Serializer of responses with tensor data that the engine has written into the slices that gRPC
// sends.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <vector>

namespace attendant::server {

// The `data` of one Tensor in a response, or another bytes field. `path` leads to it as in
// request_codec.h, with an index after the number of a repeated field: {1} for
// AttendResponse.output, {3, 0, 2} for EncodeResponse.intermediate[0].tensor, {6, 0} for the first
// element of ModelInferResponse.raw_output_contents. Elements of repeated messages along the path
// must exist in the response; those of repeated bytes must not.
struct ResponsePayload {
  std::vector<int> path;
  grpc::Slice data;  // owns its bytes
};

// Serializes `response` with each payload in its field, without copying the payloads. `response`
// contains everything else, including dtypes and shapes. Every generated protobuf parser can read
// the result.
grpc::ByteBuffer SerializeResponse(const google::protobuf::Message& response,
                                   std::vector<ResponsePayload> payloads);

}  // namespace attendant::server
