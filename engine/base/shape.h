// Shapes that come from a file or from the wire.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/types/span.h"
#include "engine/base/checked_size.h"
#include "engine/base/data_type.h"

namespace attendant {

// Number of elements of `shape`, or nothing if a dimension is negative or the product does not fit.
// A zero does not hide an overflow of the others.
std::optional<int64_t> ElementCount(absl::Span<const int64_t> shape);

// Bytes of a tensor; not ok where ElementCount returns nothing.
CheckedSize ByteCount(absl::Span<const int64_t> shape, DataType dtype);

// "[2, 3, 4]".
std::string ShapeToString(absl::Span<const int64_t> shape);

}  // namespace attendant
