// InlineMethod, a method that responds without a job.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "engine/base/status_macros.h"
#include "server/models/health_states.h"
#include "server/request/service_context.h"
#include "server/wire/request_codec.h"

namespace attendant::server {

// Both must outlive the calls.
struct MethodContext {
  const ServiceContext& service;
  HealthStates& health;
};

// Takes and returns a serialized message. Sets `model` to the served model that the call concerns,
// if any. Thread-safe.
using InlineMethod = absl::StatusOr<grpc::ByteBuffer> (*)(const MethodContext& context,
                                                          const grpc::ByteBuffer& message,
                                                          std::string& model);

// Parses the message of an InlineMethod, at most 64 KiB.
template <typename Request>
absl::StatusOr<Request> ParseInline(const grpc::ByteBuffer& message) {
  constexpr int64_t kMaxBytes = 64 << 10;
  Request request;
  RETURN_IF_ERROR(ParseRequest(message, kMaxBytes, request).status());
  return request;
}

}  // namespace attendant::server
