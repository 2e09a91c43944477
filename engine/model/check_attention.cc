#include "engine/model/check_attention.h"

#include "absl/strings/str_cat.h"

namespace attendant {

absl::Status CheckSharedHeads(const LayerShape& layer) {
  const AttentionBlockShape& attention = layer.attention;
  const bool is_disentangled = layer.relative_positions.kind == RelativePositions::kDisentangled;
  const int64_t shared = attention.key_value_heads;
  if (shared != 0 && (shared < 0 || shared >= attention.heads || attention.heads % shared != 0 ||
                      attention.kind != AttentionKind::kSoftmax || is_disentangled ||
                      attention.keys_are_queries || attention.values_are_keys)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model description: expected heads of keys and values, fewer than the ", attention.heads,
        " query heads and a divisor of their number, in softmax attention with "
        "projections of their own and without disentangled positions, got ",
        shared));
  }
  if (attention.causal && (attention.kind != AttentionKind::kSoftmax || is_disentangled ||
                           attention.pattern != AttentionPattern())) {
    return absl::InvalidArgumentError(
        absl::StrCat("model description: expected causal softmax attention without disentangled "
                     "positions and without "
                     "blocks of a pattern, got it in ",
                     Name(attention.kind), " attention with ", Name(layer.relative_positions.kind),
                     " positions"));
  }
  return absl::OkStatus();
}

}  // namespace attendant
