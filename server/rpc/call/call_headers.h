// The headers of a call over gRPC: who makes it, and the trace that it belongs to.
#pragma once

#include <grpcpp/server_context.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/security/server_secrets.h"
#include "server/settings/network.h"

namespace attendant::server {

// Returns the name of the address that a call comes from, as PeerOf of server/account/peer.h.
std::string PeerOf(const grpc::ServerContextBase& call, const std::vector<Network>& trusted);

// Returns the name of the call's token, if the server has tokens: all callers with it are one peer,
// wherever they are. Otherwise, the name of the address, as PeerOf has it. Errors are those of
// Tokens::Identify, for TokenScope::kInfer.
absl::StatusOr<std::string> IdentifyPeer(const grpc::ServerContextBase& call,
                                         const std::vector<Network>& trusted,
                                         const ServerSecrets& secrets);

// Returns the traceparent of the call's headers (server/account/trace_context.h); empty if there is
// none, if there are several, or if it is malformed.
std::string TraceParentOf(const grpc::ServerContextBase& call);

}  // namespace attendant::server
