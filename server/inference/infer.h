// ModelInfer: from its message to a request that can be queued, and from the response to a message.
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

// A ModelInferRequest. The raw contents stay where they arrived; all else of the message has at
// most kMaxInferHeadBytes. NOT_FOUND: no such model or version. INVALID_ARGUMENT: names the tensor
// or parameter, what was expected and what came.
absl::StatusOr<Preparation> PrepareInfer(const grpc::ByteBuffer& message,
                                         const ServiceContext& context);

// A ModelInferResponse, without its raw contents, which stand beside it in the order of its
// outputs.
struct InferAnswer {
  inference::ModelInferResponse message;
  std::vector<grpc::Slice> raw;
};

struct PreparedInfer {
  PreparedCompute compute;  // whose `to_message` is not set
  std::function<InferAnswer(Response)> to_answer;
};

// As Preparation::tokenizing_bytes, of PrepareInferMessage.
int64_t TokenizingBytes(const inference::ModelInferRequest& request,
                        const std::vector<Payload>& raw, const ServiceContext& context);

// As above, from a parsed message of `message_bytes` bytes and its raw contents. `client` is the
// argument of Preparation::prepare.
absl::StatusOr<PreparedInfer> PrepareInferMessage(const inference::ModelInferRequest& request,
                                                  const std::vector<Payload>& raw,
                                                  int64_t message_bytes, const std::string& client,
                                                  const ServiceContext& context);

// Enough for the token ids of the largest request in lists, and for some rows of hidden states.
inline constexpr int64_t kMaxInferHeadBytes = 512 << 10;

}  // namespace attendant::server
