// Parsers of the fields of requests, which ParseRequest combines.
#pragma once

#include "absl/status/status.h"
#include "attendant/v1/encoder_service.pb.h"
#include "server/request/compute_request.h"
#include "server/request/service_context.h"

namespace attendant::server {

// Makes `layer` the span's only layer. The model must be set.
absl::Status ParseLayer(uint32_t layer, LayerSpan& span);

// Fills layout and input from hidden states, rows of `width` columns.
absl::Status ParseRows(const WireTensor& rows, int64_t width, const TokenFields& fields,
                       ComputeRequest& compute);

// Fills `compute` except for bias, gates, rows of hidden states to return, output type and request
// id. The model, and the sequence of a chunk, must be set. Returns the errors of ParseRequest.
absl::Status ParseOwnFields(const v1::AttendRequest& request, const RequestPayloads& payloads,
                            const TokenFields& fields, const ServiceContext& context,
                            ComputeRequest& compute);
absl::Status ParseOwnFields(const v1::EncodeRequest& request, const RequestPayloads& payloads,
                            const TokenFields& fields, const ServiceContext& context,
                            ComputeRequest& compute);

// Fills the outputs of an EncodeRequest, except for those that ParseOwnFields excludes and for
// prompt tokens. The span must be set.
absl::Status ParseOutputs(const v1::EncodeRequest& request, const RequestPayloads& payloads,
                          ComputeRequest& compute);

bool HasTexts(const RequestPayloads& payloads);
// Refuses text fields in a request without texts.
absl::Status CheckNoTextFields(const v1::EncodeRequest& request, const RequestPayloads& payloads);
// Tokenizes the texts, and fills layout and input. The outputs must be set.
absl::Status ParseTexts(const v1::EncodeRequest& request, const RequestPayloads& payloads,
                        const ServiceContext& context, ComputeRequest& compute);

}  // namespace attendant::server
