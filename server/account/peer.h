// The peer that a call counts against when slots, streams and memory are shared.
#pragma once

#include <string>
#include <vector>

#include "server/settings/network.h"

namespace attendant::server {

// Returns the name of the address that a call comes from: all connections from it are one peer. Of
// an IPv6 address only the network of 64 bits counts, since that is what a host has. All callers
// over Unix sockets are one peer.
//
// `transport_peer` is what gRPC calls the peer, such as ipv4:10.0.0.1:5000. If that is in one of
// the `trusted` networks, it is a proxy, and the peer is the last address of `forwarded_for` (the
// header x-forwarded-for, "client, proxy, proxy") that is not in one of them.
std::string PeerOf(const std::string& transport_peer, const std::string& forwarded_for,
                   const std::vector<Network>& trusted);

// Returns the name of a connection (transport/grpc_traffic.h) from what gRPC calls its peer:
// "ADDRESS port PORT", or that of a Unix socket.
std::string ConnectionOf(const std::string& transport_peer);

}  // namespace attendant::server
