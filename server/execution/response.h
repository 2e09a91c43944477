// The response to a job: what was computed, and its conversion to a message.
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
#include "server/tensors/response_tensor.h"

namespace attendant::server {

struct Response {
  std::optional<ResponseTensor> hidden_states;
  std::vector<std::pair<int64_t, ResponseTensor>>
      intermediate;  // with their layers, in the order asked for
  std::vector<std::pair<int64_t, ResponseTensor>> probabilities;   // likewise
  std::vector<std::pair<int64_t, ResponseTensor>> attention_keys;  // likewise, or empty
  std::optional<ResponseTensor> weighted_values;
  std::optional<ResponseTensor> pooled;
  std::optional<ResponseTensor> token_vectors;
  std::optional<ResponseTensor> scores;  // of late interaction
  std::optional<SparseResponse> sparse;
  std::shared_ptr<const TokenizedTexts> texts = {};  // of the request; null: it had none
  bool describes_texts = false;                      // in the message
  CrossKvStore::Ticket ticket;                       // of what was registered
  v1::Execution execution;
};

// The wire form of an AttendResponse, an EncodeResponse, a PutMemoryResponse, an
// EncodeStreamResponse; the tensors' data is not copied.
grpc::ByteBuffer ToAttendResponse(Response response);
grpc::ByteBuffer ToEncodeResponse(Response response);
grpc::ByteBuffer ToPutMemoryResponse(Response response);
grpc::ByteBuffer ToStreamResponse(uint64_t id, Response response);

// An EncodeStreamResponse that carries an error, with its reason; `status` is not OK. `retry_after`
// is when to send the item again, or nothing.
grpc::ByteBuffer ToStreamError(uint64_t id, const absl::Status& status,
                               std::optional<absl::Duration> retry_after);

}  // namespace attendant::server
