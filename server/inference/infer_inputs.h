// The inputs of a ModelInfer as tensors of attendant.v1.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "attendant/v1/tensor.pb.h"
#include "inference/inference_service.pb.h"
#include "server/wire/payload.h"

namespace attendant::server {

struct InferInput {
  v1::Tensor head;  // without data
  Payload data;     // not yet compared with the shape
};

using InferInputs = std::map<std::string, InferInput>;  // by name

// `raw` are the request's raw_input_contents, which are not copied; contents of a list are.
// INVALID_ARGUMENT names the input, what was expected and what came: a name that is not among
// `accepted` or comes twice, a datatype that no tensor here has, elements that are not of it, or in
// neither place, in both, in several lists or in shared memory.
absl::StatusOr<InferInputs> ReadInputs(const inference::ModelInferRequest& request,
                                       const std::vector<Payload>& raw,
                                       const std::vector<std::string>& accepted);

}  // namespace attendant::server
