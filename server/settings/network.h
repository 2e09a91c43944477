// IP addresses and networks, in settings and of clients.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace attendant::server {

// An IPv6 address in network order; an IPv4 address is mapped to ::ffff:0:0/96.
using IpAddress = std::array<uint8_t, 16>;

// Parses "127.0.0.1" or "::1", and nothing else.
std::optional<IpAddress> ParseAddress(const std::string& text);
std::string FormatAddress(const IpAddress& address);
bool IsIpv4(const IpAddress& address);
// Returns the client's network: an IPv4 address, or the /64 of an IPv6 address, which one host may
// use.
IpAddress CallerNetwork(IpAddress address);

struct Endpoint {
  IpAddress address;
  int port;
};

// Returns nullopt for a Unix socket.
std::optional<Endpoint> EndpointOf(const sockaddr_storage& peer);

struct Network {
  IpAddress address = {};
  int prefix = 0;  // bits, of 128

  bool Contains(const IpAddress& other) const;
  bool operator==(const Network&) const = default;
};

// Parses "10.0.0.0/8", "fd00::/8" or a single address.
std::optional<Network> ParseNetwork(const std::string& text);
std::string FormatNetwork(const Network& network);

}  // namespace attendant::server
