#include "server/account/peer.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace attendant::server {
namespace {

// ipv4:127.0.0.1:5000, ipv6:%5B::1%5D:5000 or, with a scope, ipv6:%5Bfe80::1%25eth0%5D:5000.
std::optional<IpAddress> AddressOf(const std::string& transport_peer) {
  const size_t begin = transport_peer.find(':') + 1, end = transport_peer.rfind(':');
  if (begin == 0 || end < begin) return std::nullopt;
  const std::string address =
      absl::StrReplaceAll(transport_peer.substr(begin, end - begin), {{"%5B", ""}, {"%5D", ""}});
  return ParseAddress(address.substr(0, address.find('%')));
}

}  // namespace

std::string PeerOf(IpAddress address, const std::string& forwarded_for,
                   const std::vector<Network>& trusted) {
  const auto is_proxy = [&](const IpAddress& hop) {
    return std::any_of(trusted.begin(), trusted.end(),
                       [&](const Network& network) { return network.Contains(hop); });
  };
  const std::vector<std::string> hops = absl::StrSplit(forwarded_for, ',');
  for (auto hop = hops.rbegin(); hop != hops.rend() && is_proxy(address); ++hop) {
    const auto next = ParseAddress(std::string(absl::StripAsciiWhitespace(*hop)));
    if (!next) break;  // the address before this proxy is unknown
    address = *next;
  }
  return FormatAddress(CallerNetwork(address));
}

std::string PeerOf(const std::string& transport_peer, const std::string& forwarded_for,
                   const std::vector<Network>& trusted) {
  const std::optional<IpAddress> address = AddressOf(transport_peer);
  if (address) return PeerOf(*address, forwarded_for, trusted);
  return absl::StartsWith(transport_peer, "unix") ? "unix" : transport_peer;
}

std::string ConnectionOf(const std::string& transport_peer) {
  const std::optional<IpAddress> address = AddressOf(transport_peer);
  if (!address) return std::string(absl::StripPrefix(transport_peer, "unix-abstract:"));
  return absl::StrCat(FormatAddress(*address), " port ",
                      transport_peer.substr(transport_peer.rfind(':') + 1));
}

}  // namespace attendant::server
