#include "tests/support/tcp_gate.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace attendant {
namespace {

constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
constexpr int kReceiveBuffer = 4096;
constexpr size_t kPiece = 1024;

int NewSocket() {
  const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  setsockopt(made, SOL_SOCKET, SO_RCVBUF, &kReceiveBuffer, sizeof kReceiveBuffer);
  return made;
}

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

TcpGate::TcpGate(int port)
    : port_(port), listener_(NewSocket()), requests_left_(kAll), answers_left_(kAll) {
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(listener_, reinterpret_cast<const sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(listener_, SOMAXCONN), 0);
  getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
  own_port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

TcpGate::~TcpGate() {
  shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  close(listener_);
  Cut();
  std::list<Link> links;
  {
    absl::MutexLock lock(&mutex_);
    links.splice(links.end(), links_);
  }
  for (Link& link : links) {
    link.requests.join();
    link.answers.join();
    close(link.caller);
    close(link.server);
  }
}

std::string TcpGate::address() const { return absl::StrCat("127.0.0.1:", own_port_); }

void TcpGate::StallRequests(int64_t after) {
  absl::MutexLock lock(&mutex_);
  requests_left_ = after;
}

void TcpGate::StallAnswers(int64_t after) {
  absl::MutexLock lock(&mutex_);
  answers_left_ = after;
}

void TcpGate::Resume() {
  absl::MutexLock lock(&mutex_);
  requests_left_ = answers_left_ = kAll;
}

void TcpGate::Delay(absl::Duration each_piece) {
  absl::MutexLock lock(&mutex_);
  pause_ = each_piece;
}

void TcpGate::Cut() {
  absl::MutexLock lock(&mutex_);
  for (Link& link : links_) {
    link.cut = true;
    shutdown(link.caller, SHUT_RDWR);
    shutdown(link.server, SHUT_RDWR);
  }
}

void TcpGate::Accept() {
  for (;;) {
    const int caller = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (caller < 0) return;
    const int server = NewSocket();
    const sockaddr_in address = Loopback(port_);
    if (connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      close(caller);
      close(server);
      continue;
    }
    absl::MutexLock lock(&mutex_);
    Link& link = links_.emplace_back();
    link.caller = caller;
    link.server = server;
    link.requests = std::thread(
        [this, &link] { Carry(link, link.caller, link.server, &TcpGate::requests_left_); });
    link.answers = std::thread(
        [this, &link] { Carry(link, link.server, link.caller, &TcpGate::answers_left_); });
  }
}

void TcpGate::Carry(const Link& link, int from, int to, Left left) {
  char bytes[kPiece];
  ssize_t got;
  while ((got = recv(from, bytes, sizeof bytes, 0)) > 0) {
    if (!AwaitLeave(link, left, got)) break;
    if (send(to, bytes, static_cast<size_t>(got), MSG_NOSIGNAL) != got) break;
  }
  shutdown(from, SHUT_RDWR);
  shutdown(to, SHUT_RDWR);
}

bool TcpGate::AwaitLeave(const Link& link, Left left, int64_t bytes) {
  absl::Duration pause;
  {
    absl::MutexLock lock(&mutex_);
    const auto may_leave = [&] { return link.cut || this->*left > 0; };
    mutex_.Await(absl::Condition(&may_leave));
    if (link.cut) return false;
    if (this->*left != kAll) this->*left -= bytes;
    pause = pause_;
  }
  absl::SleepFor(pause);
  return true;
}

}  // namespace attendant
