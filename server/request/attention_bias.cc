#include "server/request/attention_bias.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "engine/base/shape.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

constexpr char kField[] = "attention_bias";

absl::Status RefuseValue(const CheckedTensor& bias, int64_t element, float value) {
  std::vector<int64_t> index(bias.shape.size());
  for (size_t i = index.size(); i-- > 0; element /= bias.shape[i]) {
    index[i] = element % bias.shape[i];
  }
  return InvalidField(absl::StrCat(kField, ShapeToString(index)),
                      "a finite number or minus infinity",
                      std::isnan(value) ? "NaN" : "plus infinity");
}

}  // namespace

absl::StatusOr<CheckedTensor> CheckBias(const WireTensor& tensor, absl::Span<const int64_t> full,
                                        bool has_cross_kv) {
  const auto& shape = tensor.head.shape();
  bool broadcasts = shape.size() == 4;
  for (int i = 0; broadcasts && i < 4; ++i) broadcasts = shape[i] == 1 || shape[i] == full[i];
  if (!broadcasts) {
    const absl::Span<const int64_t> given(shape.data(), static_cast<size_t>(shape.size()));
    return InvalidField(absl::StrCat(kField, ".shape"),
                        absl::StrCat(has_cross_kv ? "[B, H, S, M] = " : "[B, H, S, S] = ",
                                     ShapeToString(full), ", or 1 in any dimension"),
                        ShapeText(given));
  }
  return CheckTensor(tensor, ElementKind::kFloat);
}

absl::StatusOr<GatheredBias> GatheredBias::Gather(const CheckedTensor& bias,
                                                  const TokenLayout& layout,
                                                  int64_t first_sequence) {
  const int64_t matrix = bias.dim(2) * bias.dim(3), matrices = bias.dim(1) * matrix;
  const bool shared = bias.dim(0) == 1;
  const int64_t first = shared ? 0 : first_sequence * matrices;
  const int64_t elements = shared ? matrices : layout.sequences * matrices;
  GatheredBias gathered;
  gathered.values_ = AlignedBuffer<float>(elements);
  float* values = gathered.values_.data();
  bias.data.ReadFloats(bias.dtype, first, elements, values);
  for (int64_t i = 0; i < elements; ++i) {
    // False for NaN and for plus infinity.
    if (values[i] <= std::numeric_limits<float>::max()) continue;
    return RefuseValue(bias, first + i, values[i]);
  }
  const auto stride = [&](size_t axis, int64_t full) { return bias.dim(axis) == 1 ? 0 : full; };
  for (int64_t b = 0; b < layout.sequences; ++b) {
    AttentionBias view{.data = values + b * stride(0, matrices),
                       .head_stride = stride(1, matrix),
                       .query_stride = stride(2, bias.dim(3)),
                       .key_stride = stride(3, 1)};
    gathered.sequences_.push_back(view);
  }
  return gathered;
}

}  // namespace attendant::server
