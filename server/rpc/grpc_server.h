// Starts and stops the gRPC server with its limits on connections and messages.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/metrics/server_metrics.h"
#include "server/rpc/call_dispatcher.h"
#include "server/rpc/server_credentials.h"
#include "server/transport/connection_listener.h"

namespace attendant::server {

struct GrpcServerOptions {
  int64_t max_request_bytes = 0;    // of one message
  int64_t max_answer_bytes = 0;     // tensors of one response
  int64_t receive_quota_bytes = 0;  // request data that gRPC may hold
  absl::Duration max_connection_age = absl::Hours(1);
  ServerSecrets secrets;
};

struct RunningGrpcServer {
  std::shared_ptr<grpc::ServerCredentials> credentials;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor;
  std::unique_ptr<grpc::Server> server;
};

// Serves calls through `dispatcher`. `listener` supplies the connections: it must be started, and
// must be closed before the server shuts down. Connections that it refuses are counted in
// `metrics`. Returns UNAVAILABLE if the server cannot listen.
absl::StatusOr<RunningGrpcServer> StartGrpcServer(const GrpcServerOptions& options,
                                                  CallDispatcher& dispatcher,
                                                  ConnectionListener& listener,
                                                  ServerMetrics& metrics);

// Stops the server, which refuses further calls, once clients have received all responses. At
// `deadline` (real clock), closes the connections that have not.
void EndGrpcServer(grpc::Server& server, ConnectionListener& listener, absl::Time deadline);

}  // namespace attendant::server
