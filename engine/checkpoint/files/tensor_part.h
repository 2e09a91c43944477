// Where in a file a weight may be.
#pragma once

#include <cstdint>
#include <string>

namespace attendant {

// Rows [index / count, (index + width) / count) of a tensor in a file: a third of it, or with a
// `count` that is all of its rows, some of those.
struct RowPart {
  int64_t index = 0;
  int64_t count = 1;
  int64_t width = 1;
};

struct TensorPart {
  std::string name;
  RowPart rows = {};
  bool transposed = false;  // the file has [in, out] of a weight [out, in]
};

}  // namespace attendant
