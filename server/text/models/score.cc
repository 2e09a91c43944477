#include "server/text/models/score.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"

namespace attendant::text {
namespace {

constexpr int kLargestPower = 308;

double PowerOfTen(int exponent) {
  static const std::vector<double>* const powers = [] {
    auto* made = new std::vector<double>;
    for (int i = 0; i <= kLargestPower; ++i) {
      made->push_back(std::strtod(("1e" + std::to_string(i)).c_str(), nullptr));
    }
    return made;
  }();
  return (*powers)[exponent];
}

}  // namespace

std::optional<double> ParseScore(absl::string_view number) {
  size_t at = 0;
  const bool negative = !number.empty() && number[0] == '-';
  if (negative) ++at;
  // As many digits as fit, and the power of ten that they are scaled by.
  uint64_t digits = 0;
  int exponent = 0;
  bool full = false;
  const auto take_digits = [&](bool is_fraction) {
    for (; at < number.size() && absl::ascii_isdigit(static_cast<unsigned char>(number[at]));
         ++at) {
      const uint64_t digit = static_cast<uint64_t>(number[at] - '0');
      full = full || digits > (std::numeric_limits<uint64_t>::max() - digit) / 10;
      if (!full) digits = digits * 10 + digit;
      exponent += (full ? 1 : 0) - (is_fraction ? 1 : 0);
    }
  };
  take_digits(false);
  if (at < number.size() && number[at] == '.') {
    ++at;
    take_digits(true);
  }
  if (at < number.size() && (number[at] == 'e' || number[at] == 'E')) {
    const long written = std::strtol(std::string(number.substr(at + 1)).c_str(), nullptr, 10);
    exponent += static_cast<int>(std::clamp<long>(written, -100000, 100000));
  }
  double value = static_cast<double>(digits);
  for (int left = exponent; value != 0.0 && left != 0;) {
    const int step = std::clamp(left, -kLargestPower, kLargestPower);
    value = step < 0 ? value / PowerOfTen(-step) : value * PowerOfTen(step);
    left -= step;
  }
  if (!std::isfinite(value)) return std::nullopt;
  return negative ? -value : value;
}

}  // namespace attendant::text
