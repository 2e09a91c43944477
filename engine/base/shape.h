// Tensor shapes from files and requests, which are untrusted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/types/span.h"
#include "engine/base/checked_size.h"
#include "engine/base/data_type.h"

namespace attendant {

// Returns the number of elements of `shape`, or nothing if a dimension is negative or the product
// of the dimensions other than 0 overflows.
std::optional<int64_t> ElementCount(absl::Span<const int64_t> shape);

// Returns the bytes of a tensor. The result is not ok() if ElementCount returns nothing.
CheckedSize ByteCount(absl::Span<const int64_t> shape, DataType dtype);

// Returns a string such as "[2, 3, 4]".
std::string ShapeToString(absl::Span<const int64_t> shape);

}  // namespace attendant
