// Turns a parsed message into a ComputeRequest, checking every rule in encoder_service.proto.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "attendant/v1/encoder_service.pb.h"
#include "server/cross_kv/stream_sequence.h"
#include "server/request/compute_request.h"
#include "server/request/service_context.h"

namespace attendant::server {

// Returns NOT_FOUND for an unknown model or memory handle, and INVALID_ARGUMENT with the field, the
// expected value and the given one.
absl::StatusOr<ComputeRequest> ParseRequest(const v1::AttendRequest& request,
                                            const RequestPayloads& payloads,
                                            const ServiceContext& context);
// `client` is as in ComputeRequest; `sequence` is the one of which the request is a chunk, or null.
absl::StatusOr<ComputeRequest> ParseRequest(const v1::EncodeRequest& request,
                                            const RequestPayloads& payloads,
                                            const ServiceContext& context, std::string client = "",
                                            std::shared_ptr<StreamSequence> sequence = nullptr);
// Upper bound of the memory that ParseRequest needs to tokenize the request's texts, which should
// run on a worker. 0 if the request has no texts; parsing it is quick.
int64_t TokenizingBytes(const v1::EncodeRequest& request, const RequestPayloads& payloads,
                        const ServiceContext& context);
// Also returns RESOURCE_EXHAUSTED if there is no room for the keys and values.
absl::StatusOr<ComputeRequest> ParseRequest(const v1::PutMemoryRequest& request,
                                            const RequestPayloads& payloads,
                                            const ServiceContext& context);

}  // namespace attendant::server
