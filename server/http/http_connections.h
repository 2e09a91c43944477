// The connections of the HTTP port that are open, and the rule by which they are closed early.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace attendant::server {

// When all connections, or all of one address, are taken, the oldest of them makes room for a new
// one. Refusing the new one instead would let callers who send nothing lock out all others until
// they time out, whereas a caller who sends its request at once is answered long before it is the
// oldest. Whatever its age, a connection is closed when its lifetime is over, which bounds a
// request that arrives, or an answer that is read, byte by byte. Not thread-safe.
class HttpConnections {
 public:
  using Duration = std::chrono::steady_clock::duration;
  using TimePoint = std::chrono::steady_clock::time_point;

  // At most `limit` connections, half of which may belong to one address.
  HttpConnections(int limit, Duration lifetime);

  // Returns the connection that has to be closed before one from `address` is added; none if there
  // is room. Connections are named by their descriptors.
  std::optional<int> InTheWayOf(const std::string& address) const;
  // Returns a connection whose lifetime is over.
  std::optional<int> Ended(TimePoint now) const;
  // Returns the time at which the next lifetime is over; none if there is no connection.
  std::optional<TimePoint> next_end() const;

  void Add(int connection, std::string address, TimePoint now);
  void Remove(int connection);  // does nothing if it is not there

 private:
  struct Entry {
    int connection;
    std::string address;
    TimePoint end;
  };

  const size_t limit_;
  const size_t limit_per_address_;
  const Duration lifetime_;
  std::vector<Entry> entries_;  // from the oldest to the newest
};

}  // namespace attendant::server
