#include "client/load_requests/length_distribution.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace attendant::client {
namespace {

constexpr int64_t kDefaultLongest = 512;
constexpr char kLognormal[] = "lognormal";
constexpr char kRange[] = "..";

bool ParseLength(const std::string& text, int64_t& length) {
  return absl::SimpleAtoi(text, &length) && length >= 1 && length <= kMaxLength;
}

}  // namespace

LengthDistribution::LengthDistribution(int64_t shortest, int64_t longest)
    : shortest_(shortest), longest_(longest) {}

absl::StatusOr<LengthDistribution> LengthDistribution::Parse(const std::string& text) {
  LengthDistribution lengths(1, kDefaultLongest);
  const absl::Status error = absl::InvalidArgumentError(absl::StrCat(
      "expected N, MIN..MAX or lognormal:MEDIAN:SIGMA[:MAX], with lengths of 1..", kMaxLength,
      " and MEDIAN at most MAX (", kDefaultLongest, " if omitted); got \"", text, "\""));
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  if (parts[0] == kLognormal) {
    const bool sound = (parts.size() == 3 || parts.size() == 4) &&
                       absl::SimpleAtod(parts[1], &lengths.median_) &&
                       absl::SimpleAtod(parts[2], &lengths.sigma_) && lengths.median_ >= 1 &&
                       lengths.sigma_ >= 0 && lengths.sigma_ <= 10 &&
                       (parts.size() == 3 || ParseLength(parts[3], lengths.longest_)) &&
                       lengths.median_ <= static_cast<double>(lengths.longest_);
    if (!sound) return error;
    return lengths;
  }
  const size_t range = text.find(kRange);
  if (range == std::string::npos) {
    if (!ParseLength(text, lengths.shortest_)) return error;
    lengths.longest_ = lengths.shortest_;
    return lengths;
  }
  if (!ParseLength(text.substr(0, range), lengths.shortest_) ||
      !ParseLength(text.substr(range + 2), lengths.longest_) ||
      lengths.shortest_ > lengths.longest_) {
    return error;
  }
  return lengths;
}

int64_t LengthDistribution::Draw(std::mt19937_64& random) const {
  if (median_ == 0) return std::uniform_int_distribution(shortest_, longest_)(random);
  const double logarithm = std::log(median_) + sigma_ * std::normal_distribution<double>()(random);
  const double length = std::round(std::exp(logarithm));
  return static_cast<int64_t>(std::clamp(length, 1.0, static_cast<double>(longest_)));
}

}  // namespace attendant::client
