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

// Accepts connections on its own thread, instead of gRPC's listener: gRPC 1.51 never accepts again
// after the process has run out of descriptors, and limits neither the number of connections nor
// those of one address.
//
// Thread-safe.
class ConnectionListener {
 public:
  // Binds to a TCP port of `address` (0 picks a free one), or to a Unix socket if `address` is like
  // "unix:/path". Connections are refused until Start. Returns UNAVAILABLE with the address and
  // reason if it cannot listen.
  static absl::StatusOr<std::unique_ptr<ConnectionListener>> Bind(const std::string& address,
                                                                  int port,
                                                                  const ConnectionLimits& limits);
  // Closes the listener and ends the thread. No handler is called afterwards.
  ~ConnectionListener();

  // Takes ownership of a new connection, a non-blocking descriptor.
  using Take = std::function<void(int listener, int connection)>;
  // Called when a connection is closed at once, or cut later.
  using OnRefused = std::function<void(ConnectionRefusal refusal)>;

  // Starts accepting, and calls both on the listener's thread. Call at most once. Returns
  // UNAVAILABLE like Bind.
  absl::Status Start(Take take, OnRefused on_refused);

  // Stops listening; accepted connections stay open. `take` is not called afterwards.
  void Close();

  // The accepted connections.
  OpenConnections& connections() { return connections_; }
  int port() const { return port_; }  // 0 for a Unix socket
  // Returns "ADDRESS port PORT", or a Unix address unchanged.
  const std::string& name() const { return name_; }

 private:
  using Sockets = std::vector<std::unique_ptr<ListeningSocket>>;

  // Closes the descriptor on destruction.
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
  absl::Mutex mutex_;  // held while accepting a connection and handing it over
  Take take_ ABSL_GUARDED_BY(mutex_);
  OnRefused on_refused_ ABSL_GUARDED_BY(mutex_);
  Sockets sockets_ ABSL_GUARDED_BY(mutex_);
  int spare_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace attendant::server
