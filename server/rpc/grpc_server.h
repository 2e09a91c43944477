// Starts and stops the gRPC server with its limits on connections and messages.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/rpc/call_dispatcher.h"
#include "server/transport/connection_listener.h"

namespace attendant::server {

// Serves calls through `dispatcher`, by the limits and secrets of its context. Starts `listener`,
// which supplies the connections, must be closed before the server shuts down, and must outlive it.
// Connections that it refuses are counted. gRPC holds at most `receive_quota_bytes` of request
// data. Returns UNAVAILABLE if the server cannot listen.
absl::StatusOr<std::unique_ptr<grpc::Server>> StartGrpcServer(CallDispatcher& dispatcher,
                                                              ConnectionListener& listener,
                                                              int64_t receive_quota_bytes);

// Stops the server, which refuses further calls, once clients have received all responses. At
// `deadline` (real clock), closes the connections that have not.
void EndGrpcServer(grpc::Server& server, ConnectionListener& listener, absl::Time deadline);

}  // namespace attendant::server
