// ModelInfer: turns its message into a request for the queue, and the response into a message.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "inference/inference_service.pb.h"
#include "server/execution/prepare_request.h"
#include "server/request/service_context.h"
#include "server/wire/payload.h"

namespace attendant::server {

// Prepares a ModelInferRequest. Its raw contents are not copied; the rest of the message has at
// most kMaxInferHeadBytes. Returns NOT_FOUND for an unknown model or version, and INVALID_ARGUMENT
// with the tensor or parameter, the expected value and the given one.
absl::StatusOr<Preparation> PrepareInfer(const grpc::ByteBuffer& message,
                                         const ServiceContext& context);

// A ModelInferResponse; its raw contents are separate, in the order of its outputs.
struct InferAnswer {
  inference::ModelInferResponse message;
  std::vector<grpc::Slice> raw;
};

struct PreparedInfer {
  PreparedCompute compute;  // without `to_message`
  std::function<InferAnswer(Response)> to_answer;
};

// Returns Preparation::tokenizing_bytes for PrepareInferMessage.
int64_t TokenizingBytes(const inference::ModelInferRequest& request,
                        const std::vector<Payload>& raw, const ServiceContext& context);

// As above, for a parsed message of `message_bytes` bytes and its raw contents. `client` is the
// argument of Preparation::prepare.
absl::StatusOr<PreparedInfer> PrepareInferMessage(const inference::ModelInferRequest& request,
                                                  const std::vector<Payload>& raw,
                                                  int64_t message_bytes, const std::string& client,
                                                  const ServiceContext& context);

// Enough for the token ids of the largest request in typed contents, and for some rows of hidden
// states.
inline constexpr int64_t kMaxInferHeadBytes = 512 << 10;

}  // namespace attendant::server
