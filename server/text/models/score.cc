#include "server/text/models/score.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

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

// The digits of a number, as many of them as fit, and the power of ten that they are scaled by.
struct Decimal {
  uint64_t digits = 0;
  int exponent = 0;
};

// Takes the digit at the front of a number's digits. Returns false if it no longer fits.
bool TakeDigit(char character, Decimal& decimal) {
  const uint64_t digit = static_cast<uint64_t>(character - '0');
  if (decimal.digits > (std::numeric_limits<uint64_t>::max() - digit) / 10) return false;
  decimal.digits = decimal.digits * 10 + digit;
  return true;
}

}  // namespace

std::optional<double> ParseScore(absl::string_view number) {
  size_t at = 0;
  const bool negative = !number.empty() && number[0] == '-';
  if (negative) ++at;
  const auto is_digit = [&] {
    return at < number.size() && number[at] >= '0' && number[at] <= '9';
  };
  Decimal decimal;
  bool full = false;
  for (; is_digit(); ++at) {
    full = full || !TakeDigit(number[at], decimal);
    if (full) ++decimal.exponent;
  }
  if (at < number.size() && number[at] == '.') {
    for (++at; is_digit(); ++at) {
      full = full || !TakeDigit(number[at], decimal);
      if (!full) --decimal.exponent;
    }
  }
  if (at < number.size() && (number[at] == 'e' || number[at] == 'E')) {
    const long written = std::strtol(std::string(number.substr(at + 1)).c_str(), nullptr, 10);
    decimal.exponent += static_cast<int>(std::clamp<long>(written, -100000, 100000));
  }
  double value = static_cast<double>(decimal.digits);
  for (int left = decimal.exponent; value != 0.0 && left != 0;) {
    const int step = std::clamp(left, -kLargestPower, kLargestPower);
    value = step < 0 ? value / PowerOfTen(-step) : value * PowerOfTen(step);
    left -= step;
  }
  if (!std::isfinite(value)) return std::nullopt;
  return negative ? -value : value;
}

}  // namespace attendant::text
