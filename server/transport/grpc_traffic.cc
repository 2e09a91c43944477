#include "server/transport/grpc_traffic.h"

#include <dlfcn.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <new>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace attendant::server {
namespace {

// gRPC does not report closed descriptors, so an entry stays until its descriptor is reused for
// another connection. Thread-safe.
class Connections {
 public:
  std::shared_ptr<MeteredConnection> Add(int socket, bool encrypted, std::string name) {
    absl::MutexLock lock(&mutex_);
    if (name.empty()) name = absl::StrCat("unix-", ++unix_sockets_);
    auto connection = std::make_shared<MeteredConnection>(socket, encrypted, name);
    by_name_[name] = connection;
    by_socket_[socket] = connection;
    return connection;
  }

  std::shared_ptr<MeteredConnection> Find(int socket) const {
    absl::ReaderMutexLock lock(&mutex_);
    const auto found = by_socket_.find(socket);
    return found == by_socket_.end() ? nullptr : found->second;
  }

  std::shared_ptr<MeteredConnection> Find(const std::string& name) const {
    absl::ReaderMutexLock lock(&mutex_);
    const auto found = by_name_.find(name);
    if (found != by_name_.end()) return found->second;
    return std::make_shared<MeteredConnection>(-1, false, name);
  }

  void Forget(const MeteredConnection& connection) {
    absl::MutexLock lock(&mutex_);
    const auto found = by_name_.find(connection.name());
    // The name may belong to a newer connection of the same port already.
    if (found != by_name_.end() && found->second.get() == &connection) by_name_.erase(found);
  }

 private:
  mutable absl::Mutex mutex_;
  // Not Abseil's maps, which break if they find no memory to grow.
  std::map<int, std::shared_ptr<MeteredConnection>> by_socket_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<MeteredConnection>> by_name_ ABSL_GUARDED_BY(mutex_);
  uint64_t unix_sockets_ ABSL_GUARDED_BY(mutex_) = 0;  // so far
};

Connections& AllConnections() {
  static Connections& connections = *new Connections;  // gRPC's threads may outlive statics
  return connections;
}

thread_local std::shared_ptr<MeteredConnection> handed_over;

// Called by OpenSSL for each new SSL object; gRPC creates a connection's during the hand-over. A
// connection that cannot be metered for lack of memory is cut.
void Attach(void*, void*, CRYPTO_EX_DATA* data, int index, long, void*) {
  if (handed_over == nullptr || !handed_over->encrypted()) return;
  auto* attached = new (std::nothrow) std::shared_ptr<MeteredConnection>(handed_over);
  if (attached == nullptr || CRYPTO_set_ex_data(data, index, attached) == 0) {
    delete attached;
    handed_over->Cut();
  }
  handed_over = nullptr;
}

void Detach(void*, void* attached, CRYPTO_EX_DATA*, int, long, void*) {
  delete static_cast<std::shared_ptr<MeteredConnection>*>(attached);
}

int AttachedIndex() {
  static const int index = SSL_get_ex_new_index(0, nullptr, Attach, nullptr, Detach);
  return index;
}

// Returns null if the object belongs to no metered connection.
MeteredConnection* ConnectionOf(SSL* ssl) {
  const auto* attached =
      static_cast<std::shared_ptr<MeteredConnection>*>(SSL_get_ex_data(ssl, AttachedIndex()));
  return attached == nullptr ? nullptr : attached->get();
}

// Calls `meter` with each part of the first `bytes` of a message until that returns false. Returns
// whether it never does.
template <typename Meter>
bool ForEachPart(const msghdr& message, ssize_t bytes, Meter meter) {
  auto left = static_cast<size_t>(bytes);
  for (size_t i = 0; i < message.msg_iovlen && left > 0; ++i) {
    const iovec& part = message.msg_iov[i];
    const absl::string_view more(static_cast<const char*>(part.iov_base),
                                 std::min(part.iov_len, left));
    left -= more.size();
    if (!meter(more)) return false;
  }
  return true;
}

template <typename Function>
Function Original(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

std::shared_ptr<MeteredConnection> MeterTraffic(int socket, bool encrypted, std::string name) {
  AttachedIndex();
  handed_over = AllConnections().Add(socket, encrypted, std::move(name));
  return handed_over;
}

std::shared_ptr<MeteredConnection> FindConnection(const std::string& name) {
  return AllConnections().Find(name);
}

void ForgetConnection(MeteredConnection& connection) {
  AllConnections().Forget(connection);
  connection.Close();
}

extern "C" ssize_t recvmsg(int socket, msghdr* message, int flags) {
  static const auto of_libc = Original<ssize_t (*)(int, msghdr*, int)>("recvmsg");
  const ssize_t received = of_libc(socket, message, flags);
  if (received <= 0) return received;
  const std::shared_ptr<MeteredConnection> connection = AllConnections().Find(socket);
  if (connection == nullptr || connection->encrypted()) return received;
  const bool accepted = ForEachPart(
      *message, received, [&](absl::string_view part) { return connection->Receive(part); });
  if (accepted || !connection->HasSocket()) return received;  // or the descriptor was reused
  connection->Cut();
  return 0;
}

extern "C" ssize_t sendmsg(int socket, const msghdr* message, int flags) {
  static const auto of_libc = Original<ssize_t (*)(int, const msghdr*, int)>("sendmsg");
  const ssize_t sent = of_libc(socket, message, flags);
  if (sent <= 0) return sent;
  const std::shared_ptr<MeteredConnection> connection = AllConnections().Find(socket);
  if (connection == nullptr || connection->encrypted()) return sent;
  ForEachPart(*message, sent, [&](absl::string_view part) { return connection->Send(part), true; });
  return sent;
}

extern "C" int SSL_read(SSL* ssl, void* buffer, int size) {
  static const auto of_openssl = Original<int (*)(SSL*, void*, int)>("SSL_read");
  const int received = of_openssl(ssl, buffer, size);
  if (received <= 0) return received;
  MeteredConnection* connection = ConnectionOf(ssl);
  if (connection == nullptr ||
      connection->Receive({static_cast<const char*>(buffer), static_cast<size_t>(received)})) {
    return received;
  }
  connection->Cut();
  return -1;  // at which gRPC closes the connection
}

extern "C" int SSL_write(SSL* ssl, const void* buffer, int size) {
  static const auto of_openssl = Original<int (*)(SSL*, const void*, int)>("SSL_write");
  const int sent = of_openssl(ssl, buffer, size);
  if (sent <= 0) return sent;
  if (MeteredConnection* connection = ConnectionOf(ssl)) {
    connection->Send({static_cast<const char*>(buffer), static_cast<size_t>(sent)});
  }
  return sent;
}

// gRPC names a call's connection by the address of its other end. Unix sockets have no address, so
// that their connections would have the same name.
extern "C" int getpeername(int socket, sockaddr* __restrict address,
                           socklen_t* __restrict size) noexcept {
  using Getpeername = int (*)(int, sockaddr*, socklen_t*);
  static const auto of_libc = Original<Getpeername>("getpeername");
  const socklen_t room = size == nullptr ? 0 : *size;
  const int result = of_libc(socket, address, size);
  sockaddr_un named = {};
  if (result != 0 || room < sizeof named || address->sa_family != AF_UNIX) return result;
  const std::shared_ptr<MeteredConnection> connection = AllConnections().Find(socket);
  if (connection == nullptr || !connection->HasSocket()) return result;
  named.sun_family = AF_UNIX;
  connection->name().copy(named.sun_path + 1, sizeof named.sun_path - 1);
  std::memcpy(address, &named, sizeof named);
  *size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + connection->name().size());
  return result;
}

}  // namespace attendant::server
