// Checked arithmetic on sizes that come from a file or from the wire.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/types/span.h"

namespace attendant {

// a * b, or nothing if it does not fit. Both are at least 0.
inline std::optional<int64_t> CheckedMultiply(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// Number of elements of `shape`, or nothing if a dimension is negative or the product does not fit.
// A zero does not hide an overflow of the others.
std::optional<int64_t> ElementCount(absl::Span<const int64_t> shape);

// "[2, 3, 4]".
std::string ShapeToString(absl::Span<const int64_t> shape);

}  // namespace attendant
