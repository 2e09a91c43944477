#include "engine/base/shape.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace attendant {

std::optional<int64_t> ElementCount(absl::Span<const int64_t> shape) {
  CheckedSize count = 1;
  bool has_zero = false;
  for (int64_t dim : shape) {
    if (dim < 0) return std::nullopt;
    has_zero |= dim == 0;
    count = count * std::max<int64_t>(dim, 1);
  }
  if (!count.ok()) return std::nullopt;
  return has_zero ? 0 : count.value();
}

CheckedSize ByteCount(absl::Span<const int64_t> shape, DataType dtype) {
  return CheckedSize(ElementCount(shape).value_or(-1)) * ByteWidth(dtype);
}

std::string ShapeToString(absl::Span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

}  // namespace attendant
