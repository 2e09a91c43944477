#include "client/address.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace attendant::client {
namespace {

// Whether `text` is "host:port" or "[::1]:port".
bool HasPort(absl::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos || colon == 0) return false;
  const absl::string_view host = text.substr(0, colon);
  if (host.find(':') != absl::string_view::npos && host.back() != ']') return false;
  int port;
  return absl::SimpleAtoi(text.substr(colon + 1), &port) && port > 0 && port <= 65535;
}

// Whether `text` is a host without a port, for which gRPC would take 443, or with a wrong one,
// which gRPC would cut to 16 bits.
bool LacksPort(absl::string_view text) {
  const size_t colon = text.find(':');
  if (colon == absl::string_view::npos) return true;
  const absl::string_view port = text.substr(colon + 1);
  return text.substr(0, colon) != "unix" && !HasPort(text) &&
         std::all_of(port.begin(), port.end(), absl::ascii_isdigit);
}

absl::Status ExpectedPort(const std::string& address) {
  return absl::InvalidArgumentError(
      absl::StrCat("address: expected HOST:PORT, the server's gRPC port, without a path; got \"",
                   address, "\""));
}

}  // namespace

absl::StatusOr<Address> ReadAddress(const std::string& address) {
  const size_t end = address.find("://");
  if (end == std::string::npos) {
    return LacksPort(address) ? absl::StatusOr<Address>(ExpectedPort(address)) : Address{address};
  }
  const std::string scheme = absl::AsciiStrToLower(address.substr(0, end));
  const bool tls = scheme == "https" || scheme == "grpcs";
  if (!tls && scheme != "http" && scheme != "grpc") return Address{address};
  absl::string_view rest = absl::string_view(address).substr(end + 3);
  absl::ConsumeSuffix(&rest, "/");
  if (rest.find_first_of("/?#@") == absl::string_view::npos && HasPort(rest)) {
    return Address{std::string(rest), tls};
  }
  return ExpectedPort(address);
}

}  // namespace attendant::client
