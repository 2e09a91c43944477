// The size of recent requests of one method, from which the next one's receiving permit starts.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace attendant::server {

// A maximum that forgets: it rises to a larger request at once, and goes an eighth of the way down
// to a smaller one. Bounded below, since it says nothing of the next request. Thread-safe.
class RecentSize {
 public:
  static constexpr int64_t kLeast = int64_t{64} << 10;  // bytes

  int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

  void Report(int64_t bytes) {
    const int64_t before = this->bytes();  // a lost update is one request less to go by
    const int64_t now = bytes > before ? bytes : before - (before - bytes) / 8;
    bytes_.store(std::max(now, kLeast), std::memory_order_relaxed);
  }

 private:
  std::atomic<int64_t> bytes_ = kLeast;
};

}  // namespace attendant::server
