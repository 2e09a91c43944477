// Parses the body of an inference request: JSON, and binary tensors after it.
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
  std::vector<Payload> data;             // for the message's inputs, little-endian
  std::vector<bool> binary_outputs;      // for the message's outputs
  bool binary_by_default = false;        // if the message names no outputs
  int64_t packed_bytes = 0;              // of `data`, outside the body
};

// Reads a body that starts with `json_bytes` of JSON, in one pass; only a `data` member before the
// `shape` or `datatype` of its input is read again once both are known. Elements are converted at
// once, into memory allocated after `reserve` has accepted the total so far; other errors of
// `reserve` are returned. No number in the body determines this amount: it is at most six times the
// JSON's size. Binary tensors are not copied and share the slices.
//
// Returns INVALID_ARGUMENT with the place for invalid JSON, a duplicate key, `data` that does not
// match `shape`, a value that does not fit its datatype, or binary tensors that are not exactly the
// rest of the body. Names of tensors and datatypes are not checked; data of unknown datatypes is
// skipped.
absl::StatusOr<InferBody> ReadInferBody(const std::shared_ptr<const MessageSlices>& body,
                                        int64_t json_bytes,
                                        const std::function<absl::Status(int64_t)>& reserve);

}  // namespace attendant::server
