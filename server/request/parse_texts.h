// The texts of an EncodeRequest.
#pragma once

#include "absl/status/status.h"
#include "attendant/v1/encoder_service.pb.h"
#include "server/request/compute_request.h"
#include "server/request/service_context.h"
#include "server/tensors/tensor_check.h"

namespace attendant::server {

bool HasTexts(const RequestPayloads& payloads);

// Upper bound of the bytes that ParseRequest takes to tokenize the texts of a request, on a worker;
// 0: there are none, and it is quick.
int64_t TokenizingBytes(const v1::EncodeRequest& request, const RequestPayloads& payloads,
                        const ServiceContext& context);

// Refuses the fields that are about texts, in a request without.
absl::Status CheckNoTextFields(const v1::EncodeRequest& request, const RequestPayloads& payloads);

// Tokenizes the texts. Fills layout and input; the outputs are there.
absl::Status ParseTexts(const v1::EncodeRequest& request, const RequestPayloads& payloads,
                        const ServiceContext& context, ComputeRequest& compute);

}  // namespace attendant::server
