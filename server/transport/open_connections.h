// OpenConnections, which limits and counts connections owned by gRPC.
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

// Raises the process's soft limit on open descriptors to its hard limit, and returns the resulting
// limit.
int64_t RaiseDescriptorLimit();

// Returns the maximum number of connections for a process that may open `descriptors`; at least 1.
// A connection takes two descriptors, gRPC's and a duplicate for counting; half of all descriptors
// are left for files, the HTTP port and libraries.
int64_t MostConnections(int64_t descriptors);

struct ConnectionLimits {
  int64_t total = 1024;
  int64_t per_address = 64;  // not for Unix sockets, whose clients have no address
  bool encrypted = false;    // by TLS
  // How long a connection that was cut for a flood still counts for its address, which could
  // otherwise reconnect at once.
  absl::Duration cut_place = absl::Seconds(5);
};

// Why a connection is closed at once or, for kFrames, cut later.
enum class ConnectionRefusal { kTotal, kAddress, kDescriptors, kMemory, kFrames };

// Returns the name of a refusal for logs and metric labels: "total", "address", "descriptors",
// "memory" or "frames".
const char* ConnectionRefusalName(ConnectionRefusal refusal);

// gRPC owns the descriptors of its connections and does not report closing one. Each connection is
// therefore duplicated, and an epoll instance watches the duplicate for a hang-up, which occurs
// when the other end resets the connection, or when gRPC shuts the socket down in both directions
// before closing it.
//
// Thread-safe.
class OpenConnections {
 public:
  // `epoll` reports hang-ups as events with the duplicate as data.fd. It must outlive the object.
  OpenConnections(int epoll, ConnectionLimits limits) : epoll_(epoll), limits_(limits) {}
  // Closes all duplicates.
  ~OpenConnections();
  OpenConnections(const OpenConnections&) = delete;
  OpenConnections& operator=(const OpenConnections&) = delete;

  // Counts and meters `connection`, from `peer`, until OnHangUp. Its name (grpc_traffic.h) is
  // "ADDRESS port PORT" of the other end. Call on the thread that hands it to gRPC. A refused
  // connection is not counted. The caller keeps its descriptor either way. Does not throw.
  std::optional<ConnectionRefusal> Add(int connection, const sockaddr_storage& peer) noexcept;

  // Call for an event of `epoll`: forgets the connection and closes its duplicate. Returns kFrames
  // if it was cut for a flood.
  std::optional<ConnectionRefusal> OnHangUp(int duplicate);

  int64_t count() const;

  // Waits until each connection has, at some moment since the call, had no unacknowledged data in
  // the kernel. Returns the number of connections that have not by `deadline` (real clock). Does
  // not allocate. Not thread-safe.
  int64_t AwaitSent(absl::Time deadline);

  // Ends reading on all connections, which makes gRPC close them, and waits. Returns the number
  // still open at `deadline` (real clock).
  int64_t EndReading(absl::Time deadline) const;

 private:
  struct Peer {
    std::string address;  // empty for a Unix socket
    std::shared_ptr<MeteredConnection> connection = nullptr;
    bool awaited = false;  // by AwaitSent
  };

  // Like Add, but may throw std::bad_alloc before anything is counted.
  std::optional<ConnectionRefusal> TryAdd(int connection, const sockaddr_storage& peer);

  void FreePlaces(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool KeepPlace(const std::string& address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FreePlace(const std::string& address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int epoll_;
  const ConnectionLimits limits_;
  mutable absl::Mutex mutex_;
  // Not Abseil's maps, which break after a failed allocation.
  std::map<int, Peer> connections_ ABSL_GUARDED_BY(mutex_);  // by duplicate
  std::map<std::string, int64_t> per_address_ ABSL_GUARDED_BY(mutex_);
  // Addresses of cut connections that still count in per_address_, by end time.
  std::multimap<absl::Time, std::string> kept_places_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::server
