// HttpCalls, the calls of the HTTP port that are under way, and the times that bound them.
#pragma once

#include <poll.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/http/http_exchange.h"

namespace attendant::server {

struct HttpCallLimits {
  int calls = 256;  // at the same time, of which an address may have seven of eight
  // A body is given up after the time-out and a second for each `min_receive_rate` bytes of it.
  absl::Duration receive_timeout = absl::Seconds(10);
  int64_t min_receive_rate = int64_t{256} << 10;
  absl::Duration send_timeout = absl::Seconds(30);  // for an answer to leave
};

// A call has its place while its body is received, while it is computed and while its answer
// leaves. The time that it is computed is not bounded here, but by its deadline. Not thread-safe.
// Allocates nothing once made, but for refusals.
class HttpCalls {
 public:
  using TimePoint = HttpExchange::TimePoint;

  explicit HttpCalls(const HttpCallLimits& limits);

  // RESOURCE_EXHAUSTED with the reason (server/metrics/refusal.h) if there is no place for another
  // call, or for one of this peer.
  absl::Status CheckRoomFor(const std::string& peer) const;
  void Add(std::shared_ptr<HttpExchange> exchange);
  void Remove(int descriptor);  // does nothing if it is not there

  // Returns when the time of the first call is over; none if no time runs.
  std::optional<TimePoint> next_end() const;
  // Returns a call whose time is over, each once; null if there is none.
  std::shared_ptr<HttpExchange> TakeEnded(TimePoint now);
  const std::vector<std::shared_ptr<HttpExchange>>& all() const { return calls_; }

 private:
  std::optional<TimePoint> EndOf(const HttpExchange& exchange) const;

  const HttpCallLimits limits_;
  std::vector<std::shared_ptr<HttpExchange>> calls_;
};

}  // namespace attendant::server
