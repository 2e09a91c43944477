#include "server/execution/row_gatherer.h"

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/shape.h"
#include "engine/kernels/convert.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

absl::Status RefuseNonfinite(const char* field, const CheckedTensor& tensor, int64_t row,
                             const float* values) {
  int64_t column = 0;
  while (std::isfinite(values[column])) ++column;
  std::vector<int64_t> index = {row, column};
  if (tensor.shape.size() == 3) index = {row / tensor.dim(1), row % tensor.dim(1), column};
  return InvalidField(absl::StrCat(field, ShapeToString(index)), "a finite number",
                      absl::StrCat(values[column]));
}

// Reads the pixels of a patch, by channel, line and column.
void ReadPatch(const CheckedTensor& images, const PatchEmbeddingShape& shape, int64_t row,
               float* pixels) {
  const int64_t grid = shape.grid(), size = shape.image_size, patch = shape.patch_size;
  const int64_t image = row / (grid * grid), place = row % (grid * grid);
  const int64_t first = (place / grid * size + place % grid) * patch;
  for (int64_t line = 0; line < 3 * patch; ++line) {
    const int64_t channel = image * 3 + line / patch;
    const int64_t from = (channel * size + line % patch) * size + first;
    images.data.ReadFloats(images.dtype, from, patch, pixels + line * patch);
  }
}

}  // namespace

absl::Status GatherRows(const NamedRows& from, NonfinitePolicy policy, MatrixView<float> rows,
                        bool& nonfinite) {
  const CheckedTensor& tensor = from.tensor;
  int64_t kept = 0;
  for (const RowRun& run : from.layout.runs) {
    for (int64_t i = 0; i < run.count; ++i, ++kept) {
      // Row by row, so that the check finds the row in the cache.
      float* row = rows.row(kept);
      if (from.patches != nullptr) {
        ReadPatch(tensor, *from.patches, run.first + i, row);
      } else {
        tensor.data.ReadFloats(tensor.dtype, (run.first + i) * rows.cols, rows.cols, row);
      }
      if (AllFinite(row, rows.cols)) continue;
      nonfinite = true;
      if (policy == NonfinitePolicy::kPropagate) continue;
      return RefuseNonfinite(from.field, tensor, run.first + i, row);
    }
  }
  return absl::OkStatus();
}

}  // namespace attendant::server
