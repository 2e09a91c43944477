// The gRPC side: limits of every connection and message.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/metrics/server_metrics.h"
#include "server/rpc/call_entrance.h"
#include "server/rpc/server_credentials.h"
#include "server/transport/connection_listener.h"

namespace attendant::server {

struct GrpcServerOptions {
  int64_t max_request_bytes = 0;    // of one message
  int64_t max_answer_bytes = 0;     // of one answer's tensors
  int64_t receive_quota_bytes = 0;  // of all that gRPC holds of requests
  absl::Duration max_connection_age = absl::Hours(1);
  ServerSecrets secrets;
};

struct RunningGrpcServer {
  std::shared_ptr<grpc::ServerCredentials> credentials;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor;
  std::unique_ptr<grpc::Server> server;
};

// Serves the calls of `entrance`. Connections come from `listener`, which is
// started and which is to be closed before the server is shut down; those that it refuses count in
// `metrics`. UNAVAILABLE if it cannot listen.
absl::StatusOr<RunningGrpcServer> StartGrpcServer(const GrpcServerOptions& options,
                                                  CallEntrance& entrance,
                                                  ConnectionListener& listener,
                                                  ServerMetrics& metrics);

// Ends the server, which refuses whatever comes, once all of its answers have been received. By
// `deadline`, a time of the real clock, those that have not are cut.
void EndGrpcServer(grpc::Server& server, ConnectionListener& listener, absl::Time deadline);

}  // namespace attendant::server
