// Converts the inputs of a ModelInfer to fields of attendant.v1.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "inference/inference_service.pb.h"
#include "server/wire/request_codec.h"

namespace attendant::server {

// The input names of a text, and of the second text of a pair.
inline constexpr const char* kTextInputs[] = {"text", "text_pair"};

// Returns the bytes of all texts of a request, concatenated with their separators; empty without
// texts.
std::string AllTexts(const inference::ModelInferRequest& request, const std::vector<Payload>& raw);

bool HasInput(const inference::ModelInferRequest& request, const std::string& name);

// Puts the inputs into the fields of `call`, an AttendRequest or EncodeRequest, and their data into
// `payloads`. `raw` holds the request's raw_input_contents, which are not copied; typed contents
// are. Returns INVALID_ARGUMENT with the input, the expected value and the given one: for a name
// that is not in `accepted` or is repeated, an unsupported datatype, elements of another datatype,
// another rank, or elements that are missing, given twice, in several lists or in shared memory.
// Texts are the inputs of kTextInputs and always BYTES.
absl::Status PlaceInputs(const inference::ModelInferRequest& request,
                         const std::vector<Payload>& raw, const std::vector<std::string>& accepted,
                         google::protobuf::Message& call, PayloadsByPath& payloads);

}  // namespace attendant::server
