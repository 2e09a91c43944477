// RecentSize, the size of a method's recent requests: the initial receiving permit of its next one.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace attendant::server {

// A decaying maximum: rises at once to a larger request, and moves an eighth of the way down to a
// smaller one. Bounded below, because recent requests do not predict the next one. Thread-safe.
class RecentSize {
 public:
  static constexpr int64_t kLeast = int64_t{64} << 10;  // bytes

  int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

  void Report(int64_t bytes) {
    const int64_t before = this->bytes();  // losing an update only loses one request's influence
    const int64_t now = bytes > before ? bytes : before - (before - bytes) / 8;
    bytes_.store(std::max(now, kLeast), std::memory_order_relaxed);
  }

 private:
  std::atomic<int64_t> bytes_ = kLeast;
};

}  // namespace attendant::server
