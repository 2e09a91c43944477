#include "server/transport/grpc_traffic.h"

#include <dlfcn.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "server/transport/frame_meter.h"

namespace attendant::server {
namespace {

std::optional<uint64_t> NumberOf(int socket) {
  uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  if (getsockopt(socket, SOL_SOCKET, SO_COOKIE, &cookie, &size) != 0) return std::nullopt;
  return cookie;
}

// Thread-safe. gRPC reads a connection on one thread at a time, so the lock is not contended.
class Connection {
 public:
  Connection(int socket, bool encrypted) : encrypted_(encrypted), number_(NumberOf(socket)) {}

  bool encrypted() const { return encrypted_; }
  // Returns whether the descriptor still belongs to this connection.
  bool Is(int socket) const { return NumberOf(socket) == number_; }

  // Returns false if the connection must be cut.
  bool Receive(absl::string_view bytes) {
    absl::MutexLock lock(&mutex_);
    return meter_.Accept(bytes, sent_.load(std::memory_order_relaxed), absl::Now());
  }
  std::atomic<bool>& cut() { return cut_; }
  void CountSent(int64_t bytes) { sent_.fetch_add(bytes, std::memory_order_relaxed); }

 private:
  const bool encrypted_;
  const std::optional<uint64_t> number_;
  std::atomic<bool> cut_ = false;
  std::atomic<int64_t> sent_ = 0;
  absl::Mutex mutex_;
  FrameMeter meter_ ABSL_GUARDED_BY(mutex_){absl::Now()};
};

// gRPC does not report closed descriptors, so an entry stays until its descriptor is reused for
// another connection. Thread-safe.
class Connections {
 public:
  void Add(int socket, std::shared_ptr<Connection> connection) {
    absl::MutexLock lock(&mutex_);
    by_socket_[socket] = std::move(connection);
  }

  std::shared_ptr<Connection> Find(int socket) const {
    absl::ReaderMutexLock lock(&mutex_);
    const auto found = by_socket_.find(socket);
    return found == by_socket_.end() ? nullptr : found->second;
  }

 private:
  mutable absl::Mutex mutex_;
  std::map<int, std::shared_ptr<Connection>> by_socket_ ABSL_GUARDED_BY(mutex_);
};

Connections& AllConnections() {
  static Connections& connections = *new Connections;  // gRPC's threads may outlive statics
  return connections;
}

thread_local std::shared_ptr<Connection> handed_over;

// Called by OpenSSL for each new SSL object. gRPC creates that of a connection during the
// hand-over.
void Attach(void*, void*, CRYPTO_EX_DATA* data, int index, long, void*) {
  if (handed_over == nullptr || !handed_over->encrypted()) return;
  auto* attached = new (std::nothrow) std::shared_ptr<Connection>(std::move(handed_over));
  CRYPTO_set_ex_data(data, index, attached);
}

void Detach(void*, void* attached, CRYPTO_EX_DATA*, int, long, void*) {
  delete static_cast<std::shared_ptr<Connection>*>(attached);
}

int AttachedIndex() {
  static const int index = SSL_get_ex_new_index(0, nullptr, Attach, nullptr, Detach);
  return index;
}

void Cut(int socket) {
  // Resets the connection once all descriptors are closed. Otherwise the client could wait forever
  // for a window update.
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  shutdown(socket, SHUT_RDWR);
}

// Returns `received`, or 0 if the connection has been cut.
ssize_t Meter(Connection& connection, int socket, const msghdr& message, ssize_t received) {
  auto left = static_cast<size_t>(received);
  for (size_t i = 0; i < message.msg_iovlen && left > 0; ++i) {
    const iovec& part = message.msg_iov[i];
    const size_t bytes = std::min(part.iov_len, left);
    left -= bytes;
    if (connection.Receive({static_cast<const char*>(part.iov_base), bytes})) continue;
    if (!connection.Is(socket)) return received;  // the descriptor was reused
    connection.cut() = true;  // first, as the end of the connection is seen on another thread
    Cut(socket);
    return 0;
  }
  return received;
}

}  // namespace

std::shared_ptr<const std::atomic<bool>> MeterTraffic(int socket, bool encrypted) {
  AttachedIndex();
  auto connection = std::make_shared<Connection>(socket, encrypted);
  AllConnections().Add(socket, connection);
  handed_over = connection;
  std::atomic<bool>& cut = connection->cut();
  return {std::move(connection), &cut};
}

extern "C" ssize_t recvmsg(int socket, msghdr* message, int flags) {
  static const auto of_libc =
      reinterpret_cast<ssize_t (*)(int, msghdr*, int)>(dlsym(RTLD_NEXT, "recvmsg"));
  const ssize_t received = of_libc(socket, message, flags);
  if (received <= 0) return received;
  const std::shared_ptr<Connection> connection = AllConnections().Find(socket);
  if (connection == nullptr || connection->encrypted()) return received;
  return Meter(*connection, socket, *message, received);
}

extern "C" ssize_t sendmsg(int socket, const msghdr* message, int flags) {
  static const auto of_libc =
      reinterpret_cast<ssize_t (*)(int, const msghdr*, int)>(dlsym(RTLD_NEXT, "sendmsg"));
  const ssize_t sent = of_libc(socket, message, flags);
  if (sent <= 0) return sent;
  if (const auto connection = AllConnections().Find(socket)) connection->CountSent(sent);
  return sent;
}

extern "C" int SSL_read(SSL* ssl, void* buffer, int size) {
  static const auto of_openssl =
      reinterpret_cast<int (*)(SSL*, void*, int)>(dlsym(RTLD_NEXT, "SSL_read"));
  const int received = of_openssl(ssl, buffer, size);
  if (received <= 0) return received;
  const auto* connection =
      static_cast<std::shared_ptr<Connection>*>(SSL_get_ex_data(ssl, AttachedIndex()));
  if (connection == nullptr) return received;
  const absl::string_view bytes(static_cast<const char*>(buffer), static_cast<size_t>(received));
  if ((*connection)->Receive(bytes)) return received;
  (*connection)->cut() = true;
  return -1;  // at which gRPC closes the connection
}

}  // namespace attendant::server
