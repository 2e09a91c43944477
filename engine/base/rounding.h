// Rounding of sizes without overflow checks. CheckedSize (checked_size.h) is for untrusted sizes.
#pragma once

#include <cstdint>

namespace attendant {

// Returns a / b, rounded up. Requires a >= 0 and b > 0.
constexpr int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Rounds `value` up to a multiple of `multiple`. Requires value >= 0 and multiple > 0.
constexpr int64_t RoundUp(int64_t value, int64_t multiple) {
  return CeilDivide(value, multiple) * multiple;
}

}  // namespace attendant
