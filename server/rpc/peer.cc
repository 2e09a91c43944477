#include "server/rpc/peer.h"

#include "absl/strings/match.h"

namespace attendant::server {

std::string PeerOf(const grpc::ServerContextBase& call) {
  std::string peer = call.peer();  // ipv4:127.0.0.1:5000, ipv6:%5B::1%5D:5000 or unix:…
  if (absl::StartsWith(peer, "unix")) return "unix";
  return peer.substr(0, peer.rfind(':'));
}

}  // namespace attendant::server
