#include "http_connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <system_error>
#include <utility>

namespace {

constexpr size_t kReadBytes = size_t{64} << 10;
constexpr size_t kToldBytes = 200;  // of the body of a bad response
constexpr std::string_view kHeadEnd = "\r\n\r\n";

bool StartsWith(std::string_view text, std::string_view start) {
  return text.size() >= start.size() && strncasecmp(text.data(), start.data(), start.size()) == 0;
}

// Returns the value of a header, such as "name: "; empty if it is absent.
std::string_view HeaderOf(std::string_view head, std::string_view name) {
  while (true) {
    const size_t line = head.find("\r\n");
    if (line == std::string_view::npos) return {};
    head.remove_prefix(line + 2);
    if (StartsWith(head, name)) return head.substr(name.size(), head.find("\r\n") - name.size());
  }
}

}  // namespace

void HttpConnection::Connect() {
  Disconnect();
  const auto check = [](int result) {
    if (result < 0) throw std::system_error(errno, std::generic_category(), "connect");
  };
  check(descriptor_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port_));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  check(connect(descriptor_, reinterpret_cast<const sockaddr*>(&to), sizeof to));
  const int yes = 1;
  check(setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes));
  ended_ = false;
}

void HttpConnection::Disconnect() {
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
}

void HttpConnection::Send(const std::string& request) {
  received_.clear();
  head_ = size_ = 0;
  for (size_t sent = 0; sent < request.size();) {
    const ssize_t step =
        send(descriptor_, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
    if (step < 0 && errno != EINTR) return;  // Read finds the connection ended
    if (step > 0) sent += static_cast<size_t>(step);
  }
}

std::optional<std::string> HttpConnection::Read() {
  const size_t before = received_.size();
  received_.resize(before + kReadBytes);
  const ssize_t step = recv(descriptor_, received_.data() + before, kReadBytes, MSG_DONTWAIT);
  received_.resize(before + static_cast<size_t>(step > 0 ? step : 0));
  if (step < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  if (step <= 0) {
    ended_ = true;
    return "the connection ended before the response";
  }
  if (head_ == 0) {
    const size_t end = received_.find(kHeadEnd);
    if (end == std::string::npos) return std::nullopt;
    head_ = end + kHeadEnd.size();
    if (std::optional<std::string> failure = ReadHead()) return failure;
  }
  if (received_.size() < size_) return std::nullopt;
  const size_t status = received_.find(' ') + 1;
  if (received_.compare(status, 3, "200") == 0) return "";
  return "status " + received_.substr(status, 3) + ": " + received_.substr(head_, kToldBytes);
}

std::optional<std::string> HttpConnection::ReadHead() {
  const std::string_view head(received_.data(), head_ - 2);
  const std::string_view length = HeaderOf(head, "Content-Length: ");
  ended_ = StartsWith(HeaderOf(head, "Connection: "), "close");
  const auto [end, error] = std::from_chars(length.data(), length.data() + length.size(), size_);
  if (error != std::errc() || end != length.data() + length.size()) {
    ended_ = true;
    return "the response has no Content-Length";
  }
  size_ += head_;
  return std::nullopt;
}
