#include "server/request/token_rows.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/model/model_facts.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

// Checks that `values` has as many rows as hidden_states, and the width of the value projection's
// input.
absl::StatusOr<CheckedTensor> CheckValues(const WireTensor& tensor, const CrossKvRows& rows,
                                          int64_t width) {
  std::vector<int64_t> shape = rows.hidden_states.shape;
  shape.back() = width;
  const char* letters = rows.layout.packed           ? "[N, V] = "
                        : rows.layout.sequence_first ? "[M, B, V] = "
                                                     : "[B, M, V] = ";
  RETURN_IF_ERROR(CheckShape(tensor, shape, letters));
  return CheckTensor(tensor, ElementKind::kFloat);
}

}  // namespace

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

absl::StatusOr<CrossKvRows> CheckCrossKvRows(const v1::Memory& memory,
                                             const RequestPayloads& payloads,
                                             const LayerShape& layer, TokenFields limits) {
  RETURN_IF_ERROR(CheckTakesCrossKv(layer));
  if (!memory.has_hidden_states()) return InvalidField("memory.hidden_states", "a tensor", "none");
  if (!memory.has_values() && layer.value_inputs() != layer.key_inputs()) {
    return InvalidField("memory.values",
                        absl::StrCat("a tensor with ", layer.value_inputs(), " columns (keys have ",
                                     layer.key_inputs(), ")"),
                        "none");
  }
  limits.scope = "memory.";
  const TokenFields fields = TokenFieldsOf(memory, payloads, std::move(limits));
  ASSIGN_OR_RETURN(TokenRows rows,
                   CheckTokenRows(payloads.Of("memory.hidden_states", memory.hidden_states(),
                                              v1::Memory::kHiddenStatesFieldNumber),
                                  layer.key_inputs(), fields));
  CrossKvRows input{std::move(rows.layout), std::move(rows.tensor)};
  if (memory.has_values()) {
    ASSIGN_OR_RETURN(input.values, CheckValues(payloads.Of("memory.values", memory.values(),
                                                           v1::Memory::kValuesFieldNumber),
                                               input, layer.value_inputs()));
  }
  if (input.rows() <= fields.max_tokens) return input;
  return InvalidField("memory",
                      absl::StrCat("at most ", fields.max_tokens, " rows (", fields.limit, ")"),
                      absl::StrCat(input.rows()));
}

absl::Status CheckNeedsNoCrossKv(const LayerShape& layer) {
  if (!layer.needs_cross_kv()) return absl::OkStatus();
  return InvalidField(
      "memory",
      absl::StrCat("a memory with keys of ", layer.key_inputs(), " columns and values of ",
                   layer.value_inputs(), " (queries have ", layer.hidden_size, ")"),
      "none; send it with Attend");
}

}  // namespace attendant::server
