// The peer that a call counts against.
#pragma once

#include <grpcpp/server_context.h>

#include <string>

namespace attendant::server {

// Returns the address of the caller without its port: all connections from one address are one
// peer, and so are all from a Unix socket.
std::string PeerOf(const grpc::ServerContextBase& call);

}  // namespace attendant::server
