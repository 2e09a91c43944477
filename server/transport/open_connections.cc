#include "server/transport/open_connections.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "absl/time/clock.h"

namespace attendant::server {
namespace {

// Returns the bytes of an IP address. An IPv4 address that an IPv6 socket reports as mapped gets
// the bytes that it has on an IPv4 socket.
std::string AddressOf(const sockaddr_storage& peer) {
  if (peer.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &peer, sizeof v4);
    return std::string(reinterpret_cast<const char*>(&v4.sin_addr), sizeof v4.sin_addr);
  }
  if (peer.ss_family != AF_INET6) return "";
  sockaddr_in6 v6;
  std::memcpy(&v6, &peer, sizeof v6);
  const std::string bytes(reinterpret_cast<const char*>(&v6.sin6_addr), sizeof v6.sin6_addr);
  return IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) ? bytes.substr(12) : bytes;
}

bool HasSentAll(int connection) {
  int unsent = 0;
  return ioctl(connection, SIOCOUTQ, &unsent) != 0 || unsent == 0;
}

}  // namespace

const char* ConnectionRefusalName(ConnectionRefusal refusal) {
  switch (refusal) {
    case ConnectionRefusal::kTotal:
      return "total";
    case ConnectionRefusal::kAddress:
      return "address";
    case ConnectionRefusal::kDescriptors:
      return "descriptors";
  }
  return "";
}

OpenConnections::~OpenConnections() {
  absl::MutexLock lock(&mutex_);
  for (const auto& [duplicate, address] : connections_) {
    epoll_ctl(epoll_, EPOLL_CTL_DEL, duplicate, nullptr);
    close(duplicate);
  }
}

std::optional<ConnectionRefusal> OpenConnections::Add(int connection,
                                                      const sockaddr_storage& peer) {
  const std::string address = AddressOf(peer);
  absl::MutexLock lock(&mutex_);
  if (static_cast<int64_t>(connections_.size()) >= limits_.total) return ConnectionRefusal::kTotal;
  const auto of_address = per_address_.find(address);
  if (!address.empty() && of_address != per_address_.end() &&
      of_address->second >= limits_.per_address) {
    return ConnectionRefusal::kAddress;
  }
  const int duplicate = fcntl(connection, F_DUPFD_CLOEXEC, 0);
  if (duplicate < 0) return ConnectionRefusal::kDescriptors;
  epoll_event hang_up = {};  // is reported without being asked for
  hang_up.data.fd = duplicate;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, duplicate, &hang_up) != 0) {
    close(duplicate);
    return ConnectionRefusal::kDescriptors;
  }
  connections_[duplicate] = address;
  if (!address.empty()) ++per_address_[address];
  return std::nullopt;
}

void OpenConnections::OnHangUp(int duplicate) {
  absl::MutexLock lock(&mutex_);
  const auto connection = connections_.find(duplicate);
  if (connection == connections_.end()) return;
  const auto of_address = per_address_.find(connection->second);
  if (of_address != per_address_.end() && --of_address->second == 0) per_address_.erase(of_address);
  connections_.erase(connection);
  // The epoll instance would keep watching as long as gRPC has its descriptor.
  epoll_ctl(epoll_, EPOLL_CTL_DEL, duplicate, nullptr);
  close(duplicate);
}

int64_t OpenConnections::count() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int64_t>(connections_.size());
}

int64_t OpenConnections::AwaitSent(absl::Time deadline) const {
  // Nothing signals that the last byte has been acknowledged.
  constexpr absl::Duration kInterval = absl::Milliseconds(5);
  std::vector<int> unsent;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [duplicate, address] : connections_) unsent.push_back(duplicate);
  }
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      std::erase_if(unsent, [&](int duplicate) {
        mutex_.AssertHeld();
        return !connections_.contains(duplicate) || HasSentAll(duplicate);
      });
    }
    if (unsent.empty() || absl::Now() >= deadline) return static_cast<int64_t>(unsent.size());
    absl::SleepFor(kInterval);
  }
}

int64_t OpenConnections::EndReading(absl::Time deadline) const {
  absl::MutexLock lock(&mutex_);
  for (const auto& [duplicate, address] : connections_) shutdown(duplicate, SHUT_RD);
  const auto all_closed = [this] {
    mutex_.AssertReaderHeld();
    return connections_.empty();
  };
  mutex_.AwaitWithDeadline(absl::Condition(&all_closed), deadline);
  return static_cast<int64_t>(connections_.size());
}

}  // namespace attendant::server
