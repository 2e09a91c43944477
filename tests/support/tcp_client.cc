#include "tests/support/tcp_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/support/http_answer.h"

namespace attendant {
namespace {

constexpr int kPatienceSeconds = 60;

sockaddr_in AddressOf(const std::string& host, int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  EXPECT_EQ(inet_pton(AF_INET, host.c_str(), &address.sin_addr), 1) << host;
  return address;
}

}  // namespace

TcpClient::TcpClient(int port, const std::string& from, const std::string& to)
    : descriptor_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const timeval patience = {kPatienceSeconds, 0};
  setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(descriptor_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const sockaddr_in own = AddressOf(from, 0), server = AddressOf(to, port);
  connected_ = bind(descriptor_, reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0 &&
               connect(descriptor_, reinterpret_cast<const sockaddr*>(&server), sizeof server) == 0;
}

TcpClient::~TcpClient() {
  if (descriptor_ >= 0) close(descriptor_);
}

TcpClient::TcpClient(TcpClient&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      connected_(other.connected_),
      received_(std::move(other.received_)) {}

TcpClient& TcpClient::operator=(TcpClient&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(connected_, other.connected_);
  std::swap(received_, other.received_);
  return *this;
}

bool TcpClient::Send(const std::string& bytes) {
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t more = send(descriptor_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (more < 0) return false;
    sent += static_cast<size_t>(more);
  }
  return true;
}

bool TcpClient::ReceiveMore() {
  char bytes[4096];
  const ssize_t got = recv(descriptor_, bytes, sizeof bytes, 0);
  EXPECT_FALSE(got < 0 && errno == EAGAIN) << "the connection is still open";
  if (got <= 0) return false;
  received_.append(bytes, static_cast<size_t>(got));
  return true;
}

std::string TcpClient::ReceiveAll() {
  while (ReceiveMore()) continue;
  return std::exchange(received_, "");
}

std::string TcpClient::ReceiveAnswer(bool head_only) {
  std::optional<size_t> size;
  while (!(size = test_support::SizeOfAnswer(received_, head_only)) && ReceiveMore()) continue;
  const std::string answer = received_.substr(0, size.value_or(received_.size()));
  received_.erase(0, answer.size());
  return answer;
}

void TcpClient::EndSending() { shutdown(descriptor_, SHUT_WR); }

bool TcpClient::AwaitInput(int milliseconds) {
  pollfd readable = {descriptor_, POLLIN, 0};
  return poll(&readable, 1, milliseconds) > 0;
}

std::string Exchange(int port, const std::string& bytes) {
  TcpClient client(port);
  if (!client.connected() || !client.Send(bytes)) return "";
  return client.ReceiveAnswer(absl::StartsWith(bytes, "HEAD "));
}

}  // namespace attendant
