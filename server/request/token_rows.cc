#include "server/request/token_rows.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {

absl::StatusOr<TokenRows> CheckTokenRows(const WireTensor& rows, int64_t width,
                                         const TokenFields& fields) {
  const auto& dims = rows.head.shape();
  const absl::Span<const int64_t> shape(dims.data(), static_cast<size_t>(dims.size()));
  const bool rank_fits = shape.size() == 3 || shape.size() == 2;
  if (!rank_fits || shape.back() != width) {
    return InvalidField(rows.field + ".shape",
                        fields.sequence_first
                            ? absl::StrCat("[S, B, ", width, "]")
                            : absl::StrCat("[B, S, ", width, "], or [T, ", width, "] with lengths"),
                        ShapeText(shape));
  }
  ASSIGN_OR_RETURN(CheckedTensor tensor, CheckTensor(rows, ElementKind::kFloat));
  ASSIGN_OR_RETURN(TokenLayout layout,
                   LayOutTokens(rows.field, shape.first(shape.size() - 1), fields));
  return TokenRows{std::move(layout), std::move(tensor)};
}

absl::StatusOr<TokenRows> CheckPixels(const WireTensor& images, const PatchEmbeddingShape& patches,
                                      const TokenFields& fields) {
  const auto& dims = images.head.shape();
  const absl::Span<const int64_t> shape(dims.data(), static_cast<size_t>(dims.size()));
  const int64_t size = patches.image_size;
  if (shape.size() != 4 || shape[1] != 3 || shape[2] != size || shape[3] != size) {
    return InvalidField(images.field + ".shape", absl::StrCat("[B, 3, ", size, ", ", size, "]"),
                        ShapeText(shape));
  }
  if (fields.sequence_first) {
    return InvalidField("layout", "BATCH_FIRST with pixels", "SEQUENCE_FIRST");
  }
  ASSIGN_OR_RETURN(CheckedTensor tensor, CheckTensor(images, ElementKind::kFloat));
  const int64_t rows[] = {shape[0], patches.grid() * patches.grid()};
  ASSIGN_OR_RETURN(TokenLayout layout, LayOutTokens(images.field, rows, fields));
  return TokenRows{std::move(layout), std::move(tensor), /*are_pixels=*/true};
}

}  // namespace attendant::server
