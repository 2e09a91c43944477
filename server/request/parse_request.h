// From a parsed message to the request that is to be computed: every rule of
// encoder_service.proto's field comments.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "attendant/v1/encoder_service.pb.h"
#include "server/cross_kv/stream_sequence.h"
#include "server/request/compute_request.h"
#include "server/request/service_context.h"

namespace attendant::server {

// Where an EncodeRequest comes from.
struct EncodeOrigin {
  std::string client = {};                             // see ComputeRequest
  std::shared_ptr<StreamSequence> sequence = nullptr;  // that it is a chunk of; null: none
};

// NOT_FOUND: no such model or handle of registered keys and values. INVALID_ARGUMENT: names the
// field, what was expected and what came.
absl::StatusOr<ComputeRequest> ParseRequest(const v1::AttendRequest& request,
                                            const RequestPayloads& payloads,
                                            const ServiceContext& context);
absl::StatusOr<ComputeRequest> ParseRequest(const v1::EncodeRequest& request,
                                            const RequestPayloads& payloads,
                                            const ServiceContext& context,
                                            EncodeOrigin origin = {});
// RESOURCE_EXHAUSTED also: the keys and values do not fit with those that are kept.
absl::StatusOr<ComputeRequest> ParseRequest(const v1::PutMemoryRequest& request,
                                            const RequestPayloads& payloads,
                                            const ServiceContext& context);

}  // namespace attendant::server
