#include "client/load_test/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

namespace attendant::client {
namespace {

constexpr int kBits = 7;
constexpr uint64_t kPerOctave = uint64_t{1} << kBits;

// Values below 2 * kPerOctave have a bucket each. For larger ones, the top kBits + 1 bits choose
// it.
constexpr size_t BucketOf(uint64_t value) {
  const int shift = std::max(0, static_cast<int>(std::bit_width(value)) - kBits - 1);
  return static_cast<size_t>(shift) * kPerOctave + static_cast<size_t>(value >> shift);
}

// Returns the largest value of a bucket.
constexpr uint64_t UpperEnd(size_t bucket) {
  if (bucket < 2 * kPerOctave) return bucket;
  const size_t shift = bucket / kPerOctave - 1;
  return ((bucket - shift * kPerOctave + 1) << shift) - 1;
}

constexpr size_t kBuckets = BucketOf(INT64_MAX) + 1;

int64_t Nanoseconds(absl::Duration duration) {
  return std::max<int64_t>(0, absl::ToInt64Nanoseconds(duration));
}

}  // namespace

Histogram::Histogram() : buckets_(kBuckets) {}

void Histogram::Record(absl::Duration duration) {
  const int64_t value = Nanoseconds(duration);
  ++buckets_[BucketOf(static_cast<uint64_t>(value))];
  ++count_;
  max_ = std::max(max_, value);
  sum_ += static_cast<double>(value);
}

void Histogram::Merge(const Histogram& other) {
  for (size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
}

absl::Duration Histogram::mean() const {
  return count_ == 0 ? absl::ZeroDuration() : absl::Nanoseconds(sum_ / static_cast<double>(count_));
}

absl::Duration Histogram::Percentile(double percent) const {
  const auto wanted = static_cast<int64_t>(std::ceil(percent / 100 * static_cast<double>(count_)));
  const int64_t rank = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(count_, 1));
  int64_t seen = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    seen += buckets_[i];
    if (seen < rank) continue;
    return absl::Nanoseconds(std::min(static_cast<int64_t>(UpperEnd(i)), max_));
  }
  return absl::ZeroDuration();
}

std::vector<Histogram::Bucket> Histogram::Buckets() const {
  std::vector<Bucket> filled;
  for (size_t i = 0; i < kBuckets; ++i) {
    if (buckets_[i] == 0) continue;
    const int64_t upper = std::min(static_cast<int64_t>(UpperEnd(i)), max_);
    filled.push_back({absl::Nanoseconds(upper), buckets_[i]});
  }
  return filled;
}

int64_t Histogram::CountAbove(absl::Duration limit) const {
  int64_t above = 0;
  const size_t first = BucketOf(static_cast<uint64_t>(Nanoseconds(limit))) + 1;
  for (size_t i = first; i < kBuckets; ++i) above += buckets_[i];
  return above;
}

}  // namespace attendant::client
