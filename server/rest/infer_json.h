// From the body of an inference request, JSON and the binary tensors behind it, to a message.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "inference/inference_service.pb.h"
#include "server/wire/payload.h"

namespace attendant::server {

// All of a request but the elements of its tensors.
struct RestInferHead {
  struct Input {
    bool has_data = false;
    int64_t elements = 0;                      // of `data`
    std::optional<int64_t> binary_bytes = {};  // behind the JSON
  };

  inference::ModelInferRequest message;  // without the model's name and version
  std::vector<Input> inputs;             // as those of the message
  std::vector<bool> binary_outputs;      // as those of the message
  bool binary_by_default = false;        // if the message names no outputs

  // Memory that the elements in JSON take as those of their datatypes.
  int64_t packed_bytes() const;
};

// Reads the first `json_bytes` of the body. Nothing is allocated by a number in it: only as much as
// it has bytes. INVALID_ARGUMENT says what is wrong, and where: not strict JSON, a key twice,
// `data` that is not as long as `shape` says, or nested otherwise, or in the wrong place. Names of
// tensors and datatypes are not looked at; data of a datatype that is not known is passed over.
absl::StatusOr<RestInferHead> ReadInferHead(const MessageSlices& body, int64_t json_bytes);

// Reads the elements, for which `head` has been read from the body: of each input the little-endian
// bytes. Those behind the JSON stay where they are and share the slices. INVALID_ARGUMENT: a value
// is not one of its datatype, or the binary tensors are not all that is behind the JSON.
absl::StatusOr<std::vector<Payload>> ReadInferData(const RestInferHead& head,
                                                   const std::shared_ptr<const MessageSlices>& body,
                                                   int64_t json_bytes);

}  // namespace attendant::server
