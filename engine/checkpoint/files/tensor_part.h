// The part of a file's tensor that holds a weight.
#pragma once

#include <cstdint>
#include <string>

namespace attendant {

// Rows [index / count, (index + width) / count) of a tensor, as fractions of its rows: one of three
// stacked projections, for example. If `count` is the number of rows, these are `width` rows
// from row `index` on.
struct RowPart {
  int64_t index = 0;
  int64_t count = 1;
  int64_t width = 1;
};

struct TensorPart {
  std::string name;
  RowPart rows = {};
  bool transposed = false;  // the file holds [in, out] for a weight [out, in]
};

}  // namespace attendant
