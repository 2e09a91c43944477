// Response, the results of a job and their serialization.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "attendant/v1/encoder_service.pb.h"
#include "server/cross_kv/cross_kv_store.h"
#include "server/execution/sparse_response.h"
#include "server/request/compute_request.h"

namespace attendant::server {

struct Response {
  std::vector<OutputTensor> outputs;  // those of layers in the requested order
  std::optional<SparseResponse> sparse;
  std::shared_ptr<const TokenizedTexts> texts = {};  // of the request, or null
  bool describes_texts = false;                      // return their tokens
  CrossKvStore::Registration registration;           // of registered keys and values
  v1::Execution execution;

  // Returns null if the request did not ask for it.
  ResponseTensor* Find(OutputKind kind, int64_t layer = 0);
};

// Serialize an AttendResponse, EncodeResponse, PutMemoryResponse and EncodeStreamResponse without
// copying tensor data.
grpc::ByteBuffer ToAttendResponse(Response response);
grpc::ByteBuffer ToEncodeResponse(Response response);
grpc::ByteBuffer ToPutMemoryResponse(Response response);
grpc::ByteBuffer ToStreamResponse(uint64_t id, Response response);

// Serializes an EncodeStreamResponse with an error and its reason; `status` must not be OK.
// `retry_after` is when to resend the item, if ever.
grpc::ByteBuffer ToStreamError(uint64_t id, const absl::Status& status,
                               std::optional<absl::Duration> retry_after);

}  // namespace attendant::server
