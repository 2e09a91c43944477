// ConnectionListener, the accept loop of the gRPC port.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
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

  // Both wait for the connections that were accepted: see OpenConnections.
  int64_t AwaitSent(absl::Time deadline) const;
  int64_t EndReading(absl::Time deadline) const;

  int port() const;  // 0 for a Unix socket
  // Returns "ADDRESS port PORT", or a Unix address as it is.
  const std::string& name() const;
  int64_t open_connections() const;

 private:
  class Impl;
  explicit ConnectionListener(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace attendant::server
