// Factories of the kinds of calls.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/execution/prepare_request.h"
#include "server/request/inline_method.h"
#include "server/rpc/call/call.h"

namespace attendant::server {

// A method that runs a job, or that takes long to prepare its response. `prepare` turns the message
// into a Preparation. The client may half-close after its message or not.
using PrepareJob = absl::StatusOr<Preparation> (*)(const grpc::ByteBuffer& message,
                                                   const ServiceContext& context);
std::shared_ptr<Call> NewJobCall(CallArgs entry, PrepareJob prepare);

// EncodeStream (stream_reactor.h).
std::shared_ptr<Call> NewStreamCall(CallArgs entry);

// A method that responds at once.
std::shared_ptr<Call> NewInlineCall(CallArgs entry, InlineMethod method);

// The methods of grpc.health.v1.Health. They take no slot, so that health checks succeed on a full
// server. CheckHealth is an InlineMethod.
absl::StatusOr<grpc::ByteBuffer> CheckHealth(const MethodContext& context,
                                             const grpc::ByteBuffer& message, std::string& model);
std::shared_ptr<Call> NewHealthWatch(CallArgs entry);

// A stream of grpc.reflection.v1alpha.ServerReflection: reads requests and responds to each in turn
// until the client half-closes. Ends with INVALID_ARGUMENT if a message is malformed or too large,
// DEADLINE_EXCEEDED if no message completes in time, and UNAVAILABLE while the server drains.
std::shared_ptr<Call> NewReflectionCall(CallArgs entry);

// Methods of EncoderService about models and registered memories. Each is an InlineMethod. The
// response of GetTokenizer shares the tokenizer's bytes with the model.
absl::StatusOr<grpc::ByteBuffer> ListModels(const MethodContext& context,
                                            const grpc::ByteBuffer& message, std::string& model);
absl::StatusOr<grpc::ByteBuffer> GetModel(const MethodContext& context,
                                          const grpc::ByteBuffer& message, std::string& model);
absl::StatusOr<grpc::ByteBuffer> GetTokenizer(const MethodContext& context,
                                              const grpc::ByteBuffer& message, std::string& model);
absl::StatusOr<grpc::ByteBuffer> DropMemory(const MethodContext& context,
                                            const grpc::ByteBuffer& message, std::string& model);

}  // namespace attendant::server
