// Histogram, which counts durations in log-linear buckets.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace attendant::client {

// Every power of two of nanoseconds is divided into 128 buckets, so that a percentile is at most
// 0.8 % above the true one, whatever its size. Exact up to 256 ns. Not thread-safe.
class Histogram {
 public:
  Histogram();

  // A negative duration counts as zero, one beyond int64 nanoseconds as the largest that fits.
  void Record(absl::Duration duration);

  void Merge(const Histogram& other);

  int64_t count() const { return count_; }
  absl::Duration mean() const;
  absl::Duration max() const { return absl::Nanoseconds(max_); }

  // Returns the duration that `percent` (0 to 100) of the recorded ones do not exceed; zero if none
  // were recorded. 100 gives the maximum.
  absl::Duration Percentile(double percent) const;

  // A non-empty bucket: the number of durations in (previous upper, upper].
  struct Bucket {
    absl::Duration upper;
    int64_t count;
  };
  // Returns the buckets that are not empty, in ascending order.
  std::vector<Bucket> Buckets() const;

  // Returns how many are longer than `limit`, to the accuracy of the buckets.
  int64_t CountAbove(absl::Duration limit) const;

 private:
  std::vector<int64_t> buckets_;
  int64_t count_ = 0;
  int64_t max_ = 0;
  double sum_ = 0;
};

}  // namespace attendant::client
