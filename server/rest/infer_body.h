// From the body of an inference request, JSON and the binary tensors after it, to a message.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "inference/inference_service.pb.h"
#include "server/wire/payload.h"

namespace attendant::server {

struct InferBody {
  inference::ModelInferRequest message;  // without the model's name and version
  std::vector<Payload> data;             // of the inputs of the message, little-endian
  std::vector<bool> binary_outputs;      // as those of the message
  bool binary_by_default = false;        // if the message names no outputs
  int64_t packed_bytes = 0;              // of `data`, what is not part of the body
};

// Reads a body whose first `json_bytes` are JSON, from its first character to its last; only `data`
// that stands before the `shape` or the `datatype` of its input is read again once both are known.
// Elements become those of their datatype at once, in memory that is allocated after `reserve` was
// called with all that is needed so far and has returned OK; other errors are returned. No number
// in the body decides how much that is: it is at most six times the size of the JSON. Binary
// tensors stay where they are and share the slices.
//
// INVALID_ARGUMENT says what is wrong, and where: not strict JSON, a key twice, `data` that is not
// as long as `shape` says, or nested otherwise, or in the wrong place; a value is not one of its
// datatype; the binary tensors are not all that follows the JSON. Names of tensors and datatypes
// are not looked at; data of a datatype that is not known is passed over.
absl::StatusOr<InferBody> ReadInferBody(const std::shared_ptr<const MessageSlices>& body,
                                        int64_t json_bytes,
                                        const std::function<absl::Status(int64_t)>& reserve);

}  // namespace attendant::server
