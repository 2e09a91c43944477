// The gRPC side: ports, limits of every connection, health and reflection.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/rpc/encoder_service.h"

namespace attendant::server {

struct GrpcServerOptions {
  std::string address;
  int port = 0;                     // 0 picks a free one
  int64_t max_request_bytes = 0;    // of one message
  int64_t max_answer_bytes = 0;     // of one answer's tensors
  int64_t receive_quota_bytes = 0;  // of all that gRPC holds of requests
};

struct RunningGrpcServer {
  std::unique_ptr<grpc::Server> server;
  int port = 0;
};

// UNAVAILABLE, naming address, port and reason, if nobody could listen there now. Found at the
// start rather than after minutes of loading.
absl::Status CheckCanListen(const std::string& address, int port);

// Serves `service`, reflection, and grpc.health.v1: SERVING for the server as a whole ("") from the
// start, other names by server->GetHealthCheckService(). UNAVAILABLE if it cannot listen.
absl::StatusOr<RunningGrpcServer> StartGrpcServer(const GrpcServerOptions& options,
                                                  EncoderService& service);

}  // namespace attendant::server
