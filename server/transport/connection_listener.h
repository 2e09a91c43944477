// ConnectionListener, the accept loop of the gRPC port.
#pragma once

#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/base/listening_socket.h"
#include "server/transport/open_connections.h"

namespace attendant::server {

// Callbacks for new connections, called on the thread of the listener.
struct ConnectionHandlers {
  // Takes over a new connection, a descriptor that does not block.
  std::function<void(int listener, int connection)> take;
  // A connection was closed at once, or was cut later.
  std::function<void(ConnectionRefusal refusal)> refused;
};

// Accepts connections on a thread of its own, in place of gRPC's listener: that of gRPC 1.51 never
// accepts again after the process has once run out of descriptors, and bounds neither the number
// of connections nor that of one address.
//
// Thread-safe.
class ConnectionListener {
 public:
  // Binds to a TCP port of `address`, where 0 picks a free one, or to a Unix socket if `address` is
  // such as "unix:/path". Callers are refused before Start. UNAVAILABLE, naming the address and the
  // reason, if nobody could listen there.
  static absl::StatusOr<std::unique_ptr<ConnectionListener>> Bind(const std::string& address,
                                                                  int port,
                                                                  const ConnectionLimits& limits);
  // Closes, and ends the thread. No handler is called afterwards.
  ~ConnectionListener();

  // Starts to accept. To be called at most once. UNAVAILABLE as Bind.
  absl::Status Start(ConnectionHandlers handlers);

  // Stops listening; what has been accepted stays open. `take` is not called afterwards.
  void Close();

  // The connections that were accepted.
  OpenConnections& connections() { return connections_; }
  int port() const { return port_; }  // 0 for a Unix socket
  // Returns "ADDRESS port PORT", or a Unix address as it is.
  const std::string& name() const { return name_; }

 private:
  using Sockets = std::vector<std::unique_ptr<ListeningSocket>>;

  // Closes the descriptor in the end.
  struct Descriptor {
    explicit Descriptor(int opened) : number(opened) {}
    ~Descriptor() {
      if (number >= 0) close(number);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;

    const int number;
  };

  ConnectionListener(std::string name, Sockets sockets, const ConnectionLimits& limits);
  void Run();
  // Returns false if `descriptor` is not a listener.
  bool AcceptFrom(int descriptor);
  void Forget(int duplicate);
  void AcceptOne(const ListeningSocket& socket) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CloseOne(const ListeningSocket& socket) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string name_;
  const int port_;
  const Descriptor epoll_;
  const Descriptor stop_;
  OpenConnections connections_;
  absl::Mutex mutex_;  // held while a connection is accepted and handed over
  ConnectionHandlers handlers_ ABSL_GUARDED_BY(mutex_);
  Sockets sockets_ ABSL_GUARDED_BY(mutex_);
  int spare_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace attendant::server
