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

// The units that a tensor stacks.
enum class RowUnit {
  kTensor,  // one unit: RowPart is of all rows
  kHead,    // the heads of the attention: RowPart is of the rows of each head
  kExpert,  // the experts of a mixture: RowPart has the number of one of them, and not how many
};

struct TensorPart {
  std::string name;
  RowPart rows = {};
  RowUnit unit = RowUnit::kTensor;  // of `rows`
  bool transposed = false;          // these rows are [in, out] for a weight [out, in]
};

}  // namespace attendant
