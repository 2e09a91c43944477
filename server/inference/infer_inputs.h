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
  v1::Tensor head;             // without data
  Payload data = {};           // not yet compared with the shape
  std::vector<Payload> texts;  // of an input of BYTES, instead of data: as many as the shape has
};

// The names of a text, and of the second text of a pair.
inline constexpr const char* kTextInputs[] = {"text", "text_pair"};

// The bytes of all texts of a request, one text behind the other, with what separates them; empty:
// it has none.
std::string AllTexts(const inference::ModelInferRequest& request, const std::vector<Payload>& raw);

using InferInputs = std::map<std::string, InferInput>;  // by name

// `raw` are the request's raw_input_contents, which are not copied; contents of a list are.
// INVALID_ARGUMENT names the input, what was expected and what came: a name that is not among
// `accepted` or comes twice, a datatype that no tensor here has, elements that are not of it, or in
// neither place, in both, in several lists or in shared memory. Texts, which are of BYTES alone,
// are those of kTextInputs.
absl::StatusOr<InferInputs> ReadInputs(const inference::ModelInferRequest& request,
                                       const std::vector<Payload>& raw,
                                       const std::vector<std::string>& accepted);

}  // namespace attendant::server
