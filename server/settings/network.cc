#include "server/settings/network.h"

#include <arpa/inet.h>

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace attendant::server {
namespace {

constexpr int kMappedBits = 96;     // of the prefix that stands before an IPv4 address
constexpr size_t kCallerBytes = 8;  // of an IPv6 address, its network
constexpr IpAddress kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

}  // namespace

bool IsIpv4(const IpAddress& address) { return Network{kMapped, kMappedBits}.Contains(address); }

std::optional<IpAddress> ParseAddress(const std::string& text) {
  IpAddress address = kMapped;
  if (inet_pton(AF_INET, text.c_str(), address.data() + kMappedBits / 8) == 1) return address;
  if (inet_pton(AF_INET6, text.c_str(), address.data()) == 1) return address;
  return std::nullopt;
}

std::string FormatAddress(const IpAddress& address) {
  char text[INET6_ADDRSTRLEN];
  if (IsIpv4(address))
    return inet_ntop(AF_INET, address.data() + kMappedBits / 8, text, sizeof text);
  return inet_ntop(AF_INET6, address.data(), text, sizeof text);
}

IpAddress CallerNetwork(IpAddress address) {
  if (!IsIpv4(address)) std::fill(address.begin() + kCallerBytes, address.end(), uint8_t{0});
  return address;
}

std::optional<Endpoint> EndpointOf(const sockaddr_storage& peer) {
  IpAddress address = {};
  if (peer.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &peer, sizeof v4);
    address = kMapped;
    std::memcpy(&address[kMappedBits / 8], &v4.sin_addr, sizeof v4.sin_addr);
    return Endpoint{address, ntohs(v4.sin_port)};
  }
  if (peer.ss_family != AF_INET6) return std::nullopt;
  sockaddr_in6 v6;
  std::memcpy(&v6, &peer, sizeof v6);
  std::memcpy(address.data(), &v6.sin6_addr, sizeof v6.sin6_addr);
  return Endpoint{address, ntohs(v6.sin6_port)};
}

bool Network::Contains(const IpAddress& other) const {
  for (int bit = 0; bit < prefix; ++bit) {
    const int mask = 0x80 >> bit % 8;
    if ((address[bit / 8] & mask) != (other[bit / 8] & mask)) return false;
  }
  return true;
}

std::optional<Network> ParseNetwork(const std::string& text) {
  const size_t slash = std::min(text.find('/'), text.size());
  const std::optional<IpAddress> address = ParseAddress(text.substr(0, slash));
  if (!address) return std::nullopt;
  const int most = IsIpv4(*address) ? 32 : 128;
  int prefix = most;
  if (slash < text.size() &&
      (!absl::SimpleAtoi(text.substr(slash + 1), &prefix) || prefix < 0 || prefix > most)) {
    return std::nullopt;
  }
  return Network{*address, prefix + 128 - most};
}

std::string FormatNetwork(const Network& network) {
  const int before = IsIpv4(network.address) && network.prefix >= kMappedBits ? kMappedBits : 0;
  return absl::StrCat(FormatAddress(network.address), "/", network.prefix - before);
}

}  // namespace attendant::server
