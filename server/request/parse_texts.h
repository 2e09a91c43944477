// Parser of the texts of an EncodeRequest.
#pragma once

#include "absl/status/status.h"
#include "attendant/v1/encoder_service.pb.h"
#include "server/request/compute_request.h"
#include "server/request/service_context.h"
#include "server/tensors/tensor_check.h"

namespace attendant::server {

bool HasTexts(const RequestPayloads& payloads);

// Upper bound of the memory that ParseRequest needs to tokenize the request's texts, which should
// run on a worker. 0 if it has no texts and parsing is quick.
int64_t TokenizingBytes(const v1::EncodeRequest& request, const RequestPayloads& payloads,
                        const ServiceContext& context);

// Refuses text fields in a request without texts.
absl::Status CheckNoTextFields(const v1::EncodeRequest& request, const RequestPayloads& payloads);

// Tokenizes the texts, and fills layout and input. The outputs must be set.
absl::Status ParseTexts(const v1::EncodeRequest& request, const RequestPayloads& payloads,
                        const ServiceContext& context, ComputeRequest& compute);

}  // namespace attendant::server
