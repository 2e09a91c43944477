// The peer of a call, to which its slots, streams and memory are charged.
#pragma once

#include <string>
#include <vector>

#include "server/settings/network.h"

namespace attendant::server {

// Returns the name of the address of a call: all connections from it are one peer. Of an IPv6
// address, only the 64-bit network counts, because one host may use all of it. All clients over
// Unix sockets are one peer.
//
// If the address is in one of the `trusted` networks, it is a proxy, and the peer is the last
// address in `forwarded_for` (the header x-forwarded-for, "client, proxy, proxy") that is not in
// one of them.
std::string PeerOf(IpAddress address, const std::string& forwarded_for,
                   const std::vector<Network>& trusted);

// `transport_peer` is gRPC's name of the peer, such as ipv4:10.0.0.1:5000.
std::string PeerOf(const std::string& transport_peer, const std::string& forwarded_for,
                   const std::vector<Network>& trusted);

// Returns the name of a connection (transport/grpc_traffic.h) from gRPC's name of its peer:
// "ADDRESS port PORT", or that of a Unix socket.
std::string ConnectionOf(const std::string& transport_peer);

}  // namespace attendant::server
