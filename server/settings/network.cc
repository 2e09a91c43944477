#include "server/settings/network.h"

#include <arpa/inet.h>

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace attendant::server {
namespace {

constexpr int kMappedBits = 96;  // of the prefix that stands before an IPv4 address
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
