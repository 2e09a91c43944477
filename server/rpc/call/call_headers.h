// Headers of a gRPC call: its client and its trace.
#pragma once

#include <grpcpp/server_context.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/security/server_secrets.h"
#include "server/settings/network.h"

namespace attendant::server {

// Returns the name of the client's address, like PeerOf in server/account/peer.h.
std::string PeerOf(const grpc::ServerContextBase& call, const std::vector<Network>& trusted);

// Returns the name of the call's token if the server has tokens: all clients that use it are one
// peer, wherever they are. Otherwise returns the name of the address, like PeerOf. Returns the
// errors of Tokens::Identify for TokenScope::kInfer.
absl::StatusOr<std::string> IdentifyPeer(const grpc::ServerContextBase& call,
                                         const std::vector<Network>& trusted,
                                         const ServerSecrets& secrets);

// Returns the traceparent header (server/account/trace_context.h); empty if it is missing, repeated
// or malformed.
std::string TraceParentOf(const grpc::ServerContextBase& call);

}  // namespace attendant::server
