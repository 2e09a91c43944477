// IP addresses and networks, of settings and of callers.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace attendant::server {

// An IPv6 address in network order; an IPv4 address is mapped to ::ffff:0:0/96.
using IpAddress = std::array<uint8_t, 16>;

// "127.0.0.1" or "::1"; nothing else.
std::optional<IpAddress> ParseAddress(const std::string& text);
std::string FormatAddress(const IpAddress& address);
bool IsIpv4(const IpAddress& address);
// The network of a caller: an IPv4 address, or the /64 of an IPv6 address, which is what a host
// has.
IpAddress CallerNetwork(IpAddress address);

struct Endpoint {
  IpAddress address;
  int port;
};

// Nothing for a Unix socket.
std::optional<Endpoint> EndpointOf(const sockaddr_storage& peer);

struct Network {
  IpAddress address = {};
  int prefix = 0;  // bits, of the 128

  bool Contains(const IpAddress& other) const;
  bool operator==(const Network&) const = default;
};

// "10.0.0.0/8" or "fd00::/8", or an address for itself alone.
std::optional<Network> ParseNetwork(const std::string& text);
std::string FormatNetwork(const Network& network);

}  // namespace attendant::server
