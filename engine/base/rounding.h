// Sizes rounded up; unchecked, for those that are known to be small (see shape.h for others).
#pragma once

#include <cstdint>

namespace attendant {

// a / b; a >= 0, b > 0.
constexpr int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The least multiple that is no less than `value`; value >= 0, multiple > 0.
constexpr int64_t RoundUp(int64_t value, int64_t multiple) {
  return CeilDivide(value, multiple) * multiple;
}

}  // namespace attendant
