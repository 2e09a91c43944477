// What a job computed, and its way into a response message.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "attendant/v1/encoder_service.pb.h"
#include "server/cross_kv/memory_store.h"
#include "server/request/compute_request.h"
#include "server/tensors/answer_tensor.h"

namespace attendant::server {

struct Answer {
  std::optional<AnswerTensor> hidden_states;
  std::vector<std::pair<int64_t, AnswerTensor>>
      intermediate;  // with their layers, in the order asked for
  std::vector<std::pair<int64_t, AnswerTensor>> probabilities;   // likewise
  std::vector<std::pair<int64_t, AnswerTensor>> attention_keys;  // likewise, or empty
  std::optional<AnswerTensor> weighted_values;
  std::optional<AnswerTensor> pooled;
  std::optional<MemoryStore::Ticket> ticket;  // of PutMemory
  v1::Execution execution;
};

// The wire form of an AttendResponse, an EncodeResponse, a PutMemoryResponse, an
// EncodeStreamResponse; the tensors' data is not copied.
grpc::ByteBuffer ToAttendResponse(Answer answer);
grpc::ByteBuffer ToEncodeResponse(Answer answer);
grpc::ByteBuffer ToPutMemoryResponse(Answer answer);
grpc::ByteBuffer ToStreamResponse(uint64_t id, Answer answer);

// An EncodeStreamResponse that carries an error; `status` is not OK.
grpc::ByteBuffer ToStreamError(uint64_t id, const absl::Status& status);

}  // namespace attendant::server
