// LengthDistribution, the distribution of sequence lengths in a load test.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "absl/status/statusor.h"

namespace attendant::client {

// The longest sequence of a load test.
inline constexpr int64_t kMaxLength = int64_t{1} << 24;

// Immutable.
class LengthDistribution {
 public:
  // Parses "128" (every length), "5..512" (uniform, both ends included), "lognormal:24:0.8" or
  // "lognormal:24:0.8:256": the median, the sigma of the logarithm, and the maximum (512 if not
  // given), to which longer lengths are cut. INVALID_ARGUMENT for anything else.
  static absl::StatusOr<LengthDistribution> Parse(const std::string& text);

  // Returns a length in [1, longest()].
  int64_t Draw(std::mt19937_64& random) const;

  int64_t longest() const { return longest_; }

 private:
  LengthDistribution(int64_t shortest, int64_t longest);

  int64_t shortest_;
  int64_t longest_;
  double median_ = 0;  // 0: uniform
  double sigma_ = 0;
};

}  // namespace attendant::client
