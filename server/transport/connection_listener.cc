#include "server/transport/connection_listener.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace attendant::server {
namespace {

absl::Status CannotListen(const std::string& name, absl::string_view reason) {
  return absl::UnavailableError(absl::StrCat("cannot listen on ", name, " for gRPC: ", reason));
}

void WatchForInput(int epoll, int descriptor) {
  epoll_event input = {};
  input.events = EPOLLIN;
  input.data.fd = descriptor;
  epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &input);
}

// A descriptor that is given up to accept, and so to close, a connection when there is no other.
// Without it the connection would stay in the backlog, and the listener would be ready for ever.
int OpenSpare() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

}  // namespace

ConnectionListener::ConnectionListener(std::string name, Sockets sockets,
                                       const ConnectionLimits& limits)
    : name_(std::move(name)),
      port_(sockets[0]->port()),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      stop_(eventfd(0, EFD_CLOEXEC)),
      connections_(epoll_.number, limits),
      sockets_(std::move(sockets)),
      spare_(OpenSpare()) {}

ConnectionListener::~ConnectionListener() {
  Close();
  if (thread_.joinable()) {
    const uint64_t one = 1;
    if (write(stop_.number, &one, sizeof one) < 0) std::abort();  // an eventfd always takes it
    thread_.join();
  }
  absl::MutexLock lock(&mutex_);
  if (spare_ >= 0) close(spare_);
}

absl::StatusOr<std::unique_ptr<ConnectionListener>> ConnectionListener::Bind(
    const std::string& address, int port, const ConnectionLimits& limits) {
  const bool is_unix = IsUnixAddress(address);
  absl::StatusOr<Sockets> sockets = ListeningSocket::Bind(address, port);
  if (!sockets.ok()) {
    return CannotListen(is_unix ? address : absl::StrCat(address, " port ", port),
                        sockets.status().message());
  }
  std::string name = is_unix ? address : absl::StrCat(address, " port ", sockets->front()->port());
  return std::unique_ptr<ConnectionListener>(
      new ConnectionListener(std::move(name), *std::move(sockets), limits));
}

absl::Status ConnectionListener::Start(Take take, OnRefused on_refused) {
  absl::MutexLock lock(&mutex_);
  if (epoll_.number < 0 || stop_.number < 0 || spare_ < 0) {
    return CannotListen(name_, std::strerror(EMFILE));
  }
  take_ = std::move(take);
  on_refused_ = std::move(on_refused);
  WatchForInput(epoll_.number, stop_.number);
  for (const auto& socket : sockets_) {
    if (absl::Status status = socket->Listen(); !status.ok()) {
      return CannotListen(name_, status.message());
    }
    WatchForInput(epoll_.number, socket->descriptor());
  }
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void ConnectionListener::Close() {
  absl::MutexLock lock(&mutex_);
  sockets_.clear();  // which the epoll instance forgets with them
}

void ConnectionListener::Run() {
  for (;;) {
    epoll_event event;
    if (epoll_wait(epoll_.number, &event, 1, -1) <= 0) continue;  // interrupted
    if (event.data.fd == stop_.number) return;
    if (!AcceptFrom(event.data.fd)) Forget(event.data.fd);
  }
}

bool ConnectionListener::AcceptFrom(int descriptor) {
  absl::MutexLock lock(&mutex_);
  for (const auto& socket : sockets_) {
    if (socket->descriptor() != descriptor) continue;
    AcceptOne(*socket);
    return true;
  }
  return false;
}

void ConnectionListener::Forget(int duplicate) {
  const std::optional<ConnectionRefusal> refusal = connections_.OnHangUp(duplicate);
  absl::MutexLock lock(&mutex_);
  if (refusal) on_refused_(*refusal);
}

void ConnectionListener::AcceptOne(const ListeningSocket& socket) {
  sockaddr_storage peer = {};
  socklen_t size = sizeof peer;
  const int connection = accept4(socket.descriptor(), reinterpret_cast<sockaddr*>(&peer), &size,
                                 SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (connection < 0) {
    if (errno == EMFILE || errno == ENFILE) CloseOne(socket);
    return;
  }
  if (const auto refusal = connections_.Add(connection, peer)) {
    close(connection);
    on_refused_(*refusal);
    return;
  }
  const int yes = 1;
  if (!socket.is_unix()) setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  take_(socket.descriptor(), connection);
}

void ConnectionListener::CloseOne(const ListeningSocket& socket) {
  if (spare_ >= 0) close(spare_);
  const int connection = accept4(socket.descriptor(), nullptr, nullptr, SOCK_CLOEXEC);
  if (connection >= 0) {
    close(connection);
    on_refused_(ConnectionRefusal::kDescriptors);
  }
  spare_ = OpenSpare();
  // Another thread was faster: do not spin until it closes something.
  if (connection < 0 || spare_ < 0) absl::SleepFor(absl::Milliseconds(10));
}

}  // namespace attendant::server
