#include "client/address.h"

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

}  // namespace

absl::StatusOr<Address> ReadAddress(const std::string& address) {
  const size_t end = address.find("://");
  if (end == std::string::npos) return Address{address};
  const std::string scheme = absl::AsciiStrToLower(address.substr(0, end));
  const bool tls = scheme == "https" || scheme == "grpcs";
  if (!tls && scheme != "http" && scheme != "grpc") return Address{address};
  absl::string_view rest = absl::string_view(address).substr(end + 3);
  absl::ConsumeSuffix(&rest, "/");
  if (rest.find_first_of("/?#@") == absl::string_view::npos && HasPort(rest)) {
    return Address{std::string(rest), tls};
  }
  return absl::InvalidArgumentError(
      absl::StrCat("address: expected HOST:PORT, the server's gRPC port, without a path; got \"",
                   address, "\""));
}

}  // namespace attendant::client
