#include "server/transport/open_connections.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/base/names.h"
#include "server/base/clock.h"
#include "server/settings/network.h"
#include "server/transport/grpc_traffic.h"

namespace attendant::server {
namespace {

constexpr Named<ConnectionRefusal> kRefusals[] = {{"total", ConnectionRefusal::kTotal},
                                                  {"address", ConnectionRefusal::kAddress},
                                                  {"descriptors", ConnectionRefusal::kDescriptors},
                                                  {"memory", ConnectionRefusal::kMemory},
                                                  {"frames", ConnectionRefusal::kFrames}};

bool HasSentAll(int connection) {
  int unsent = 0;
  return ioctl(connection, SIOCOUTQ, &unsent) != 0 || unsent == 0;
}

// Returns a duplicate of `connection` that `epoll` watches for a hang-up, or -1.
int Watch(int epoll, int connection) {
  const int duplicate = fcntl(connection, F_DUPFD_CLOEXEC, 0);
  if (duplicate < 0) return -1;
  epoll_event hang_up = {};  // is reported without being asked for
  hang_up.data.fd = duplicate;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, duplicate, &hang_up) == 0) return duplicate;
  close(duplicate);
  return -1;
}

}  // namespace

const char* ConnectionRefusalName(ConnectionRefusal refusal) { return NameIn(kRefusals, refusal); }

int64_t RaiseDescriptorLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  rlimit raised = limit;
  raised.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  constexpr rlim_t kMost = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(std::min(limit.rlim_cur, kMost));
}

int64_t MostConnections(int64_t descriptors) { return std::max<int64_t>(descriptors / 4, 1); }

OpenConnections::~OpenConnections() {
  absl::MutexLock lock(&mutex_);
  for (const auto& [duplicate, peer] : connections_) {
    epoll_ctl(epoll_, EPOLL_CTL_DEL, duplicate, nullptr);
    close(duplicate);
    ForgetConnection(*peer.connection);
  }
}

std::optional<ConnectionRefusal> OpenConnections::Add(int connection,
                                                      const sockaddr_storage& peer) noexcept {
  try {
    return TryAdd(connection, peer);
  } catch (const std::bad_alloc&) {
    return ConnectionRefusal::kMemory;
  }
}

std::optional<ConnectionRefusal> OpenConnections::TryAdd(int connection,
                                                         const sockaddr_storage& peer) {
  const std::optional<Endpoint> endpoint = EndpointOf(peer);
  const std::string address = endpoint ? FormatAddress(endpoint->address) : "";
  const std::string name = endpoint ? absl::StrCat(address, " port ", endpoint->port) : "";
  // The entries, while nothing is changed if there is no memory for them.
  std::map<int, Peer> added;
  Peer& added_peer = added.emplace(connection, Peer{address}).first->second;
  std::map<std::string, int64_t> counted = {{address, 0}};
  absl::MutexLock lock(&mutex_);
  FreePlaces(RealClock().Now());
  if (static_cast<int64_t>(connections_.size()) >= limits_.total) return ConnectionRefusal::kTotal;
  const auto of_address = per_address_.find(address);
  if (!address.empty() && of_address != per_address_.end() &&
      of_address->second >= limits_.per_address) {
    return ConnectionRefusal::kAddress;
  }
  added_peer.connection = MeterTraffic(connection, limits_.encrypted, name);
  const int duplicate = Watch(epoll_, connection);
  if (duplicate < 0) {
    ForgetConnection(*added_peer.connection);
    return ConnectionRefusal::kDescriptors;
  }
  auto entry = added.extract(connection);
  entry.key() = duplicate;
  connections_.insert(std::move(entry));
  if (endpoint) {
    per_address_.merge(counted);
    ++per_address_.find(address)->second;
  }
  return std::nullopt;
}

void OpenConnections::FreePlace(const std::string& address) {
  const auto of_address = per_address_.find(address);
  if (of_address != per_address_.end() && --of_address->second == 0) per_address_.erase(of_address);
}

// Returns false if there is no memory for that.
bool OpenConnections::KeepPlace(const std::string& address) {
  try {
    if (!address.empty()) kept_places_.emplace(RealClock().Now() + limits_.cut_place, address);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void OpenConnections::FreePlaces(absl::Time now) {
  while (!kept_places_.empty() && kept_places_.begin()->first <= now) {
    FreePlace(kept_places_.begin()->second);
    kept_places_.erase(kept_places_.begin());
  }
}

std::optional<ConnectionRefusal> OpenConnections::OnHangUp(int duplicate) {
  std::shared_ptr<MeteredConnection> closed;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = connections_.find(duplicate);
    if (found == connections_.end()) return std::nullopt;
    const Peer peer = std::move(found->second);
    closed = peer.connection;
    if (!closed->is_cut() || !KeepPlace(peer.address)) FreePlace(peer.address);
    connections_.erase(found);
    // The epoll instance would keep watching as long as gRPC has its descriptor.
    epoll_ctl(epoll_, EPOLL_CTL_DEL, duplicate, nullptr);
    close(duplicate);
  }
  ForgetConnection(*closed);  // without the mutex: it may run calls that wait for memory
  return closed->is_cut() ? std::optional(ConnectionRefusal::kFrames) : std::nullopt;
}

int64_t OpenConnections::count() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int64_t>(connections_.size());
}

int64_t OpenConnections::AwaitSent(absl::Time deadline) {
  // Nothing signals that the last byte has been acknowledged.
  constexpr absl::Duration kInterval = absl::Milliseconds(5);
  {
    absl::MutexLock lock(&mutex_);
    for (auto& [duplicate, peer] : connections_) peer.awaited = true;
  }
  for (;;) {
    int64_t unsent = 0;
    {
      absl::MutexLock lock(&mutex_);
      for (auto& [duplicate, peer] : connections_) {
        peer.awaited = peer.awaited && !HasSentAll(duplicate);
        if (peer.awaited) ++unsent;
      }
    }
    if (unsent == 0 || RealClock().Now() >= deadline) return unsent;
    absl::SleepFor(kInterval);
  }
}

int64_t OpenConnections::EndReading(absl::Time deadline) const {
  absl::MutexLock lock(&mutex_);
  for (const auto& [duplicate, peer] : connections_) shutdown(duplicate, SHUT_RD);
  const auto all_closed = [this] {
    mutex_.AssertReaderHeld();
    return connections_.empty();
  };
  mutex_.AwaitWithTimeout(absl::Condition(&all_closed), deadline - RealClock().Now());
  return static_cast<int64_t>(connections_.size());
}

}  // namespace attendant::server
