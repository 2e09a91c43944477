// Where in a file a weight may be.
#pragma once

#include <cstdint>
#include <string>

namespace attendant {

// Rows [index / count, (index + 1) / count) of a tensor in a file.
struct RowPart {
  int64_t index = 0;
  int64_t count = 1;
};

struct TensorPart {
  std::string name;
  RowPart rows = {};
  bool transposed = false;  // the file has [in, out] of a weight [out, in]
};

}  // namespace attendant
