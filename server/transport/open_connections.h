// OpenConnections, which bounds and counts connections that another part of the process owns.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/transport/metered_connection.h"

namespace attendant::server {

struct ConnectionLimits {
  int64_t total = 1024;
  int64_t per_address = 64;  // does not apply to Unix sockets, whose callers have no address
  bool encrypted = false;    // by TLS
  // How long a connection that was cut for a flood still counts for its address, which otherwise
  // could reconnect at once.
  absl::Duration cut_place = absl::Seconds(5);
};

// The reason why a connection is closed at once or, for kFrames, later because of a flood.
enum class ConnectionRefusal { kTotal, kAddress, kDescriptors, kMemory, kFrames };

// The name of a refusal, for logs and metric labels: "total", "address", "descriptors",
// "memory" or "frames".
const char* ConnectionRefusalName(ConnectionRefusal refusal);

// gRPC owns the descriptors of its connections and does not say when it closes one. Therefore each
// connection is duplicated here, and the duplicate is watched by an epoll instance for a hang-up.
// gRPC shuts a socket down in both directions before it closes it, so the hang-up comes then, or
// when the other end resets the connection.
//
// Thread-safe.
class OpenConnections {
 public:
  // Hang-ups are reported by `epoll` as events whose data.fd is the duplicate. `epoll` must outlive
  // the object.
  OpenConnections(int epoll, ConnectionLimits limits) : epoll_(epoll), limits_(limits) {}
  // Closes all duplicates.
  ~OpenConnections();
  OpenConnections(const OpenConnections&) = delete;
  OpenConnections& operator=(const OpenConnections&) = delete;

  // Counts and meters `connection`, which came from `peer`, until OnHangUp. Its name
  // (grpc_traffic.h) is "ADDRESS port PORT" of the other end. To be called on the thread that hands
  // it to gRPC. On a refusal nothing is counted.
  // The caller keeps its descriptor either way. Does not throw.
  std::optional<ConnectionRefusal> Add(int connection, const sockaddr_storage& peer) noexcept;

  // To be called for an event of `epoll`: forgets the connection and closes its duplicate. Returns
  // kFrames if it was cut for a flood.
  std::optional<ConnectionRefusal> OnHangUp(int duplicate);

  int64_t count() const;

  // Waits until each connection has, at some moment since the call, had nothing left to send in the
  // kernel: the other end's kernel has acknowledged every byte by then. Returns the number of
  // connections that did not get there by `deadline`, a time of the real clock. Allocates nothing;
  // one thread at a time.
  int64_t AwaitSent(absl::Time deadline);

  // Lets gRPC read nothing more from any connection, at which it closes it, and waits for that.
  // Returns the number of connections that are open at `deadline`, a time of the real clock.
  int64_t EndReading(absl::Time deadline) const;

 private:
  struct Peer {
    std::string address;  // empty for a Unix socket
    std::shared_ptr<MeteredConnection> connection = nullptr;
    bool awaited = false;  // by AwaitSent
  };

  // As Add, but may throw std::bad_alloc, as long as nothing is counted.
  std::optional<ConnectionRefusal> TryAdd(int connection, const sockaddr_storage& peer);

  void FreePlaces(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool KeepPlace(const std::string& address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FreePlace(const std::string& address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int epoll_;
  const ConnectionLimits limits_;
  mutable absl::Mutex mutex_;
  // Not Abseil's maps, which break if they find no memory to grow.
  std::map<int, Peer> connections_ ABSL_GUARDED_BY(mutex_);  // by the duplicate
  std::map<std::string, int64_t> per_address_ ABSL_GUARDED_BY(mutex_);
  // Addresses of cut connections that per_address_ still counts, by the time when that ends.
  std::multimap<absl::Time, std::string> kept_places_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::server
