// Converts the inputs of a ModelInfer to tensors of attendant.v1.
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
  Payload data = {};           // not yet checked against the shape
  std::vector<Payload> texts;  // of a BYTES input, instead of data: one per element
};

// The input names of a text, and of the second text of a pair.
inline constexpr const char* kTextInputs[] = {"text", "text_pair"};

// Returns the bytes of all texts of a request, concatenated with their separators; empty without
// texts.
std::string AllTexts(const inference::ModelInferRequest& request, const std::vector<Payload>& raw);

using InferInputs = std::map<std::string, InferInput>;  // by name

// `raw` holds the request's raw_input_contents, which are not copied; typed contents are. Returns
// INVALID_ARGUMENT with the input, the expected value and the given one: for a name that is not in
// `accepted` or is repeated, an unsupported datatype, elements of another datatype, or elements
// that are missing, given twice, in several lists or in shared memory. Texts are the inputs of
// kTextInputs and always BYTES.
absl::StatusOr<InferInputs> ReadInputs(const inference::ModelInferRequest& request,
                                       const std::vector<Payload>& raw,
                                       const std::vector<std::string>& accepted);

}  // namespace attendant::server
