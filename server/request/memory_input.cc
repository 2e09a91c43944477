#include "server/request/memory_input.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/request/token_rows.h"
#include "server/tensors/status_mapping.h"

namespace attendant::server {
namespace {

// Of hidden_states, but with the columns that values are made of.
absl::StatusOr<CheckedTensor> CheckValues(const WireTensor& tensor, const MemoryInput& memory,
                                          int64_t width) {
  std::vector<int64_t> shape = memory.hidden_states.shape;
  shape.back() = width;
  const char* letters = memory.layout.packed           ? "[N, V] = "
                        : memory.layout.sequence_first ? "[M, B, V] = "
                                                       : "[B, M, V] = ";
  absl::Status status = CheckShape(tensor, shape, letters);
  if (!status.ok()) return status;
  return CheckTensor(tensor, ElementKind::kFloat);
}

}  // namespace

absl::StatusOr<MemoryInput> CheckMemory(const v1::Memory& memory, const RequestPayloads& payloads,
                                        const MemoryClaims& claims) {
  const LayerShape& layer = claims.layer;
  absl::Status status = CheckTakesMemory(layer);
  if (status.ok() && !memory.has_hidden_states()) {
    status = Refusal("memory.hidden_states", "a tensor", "none");
  }
  if (status.ok() && !memory.has_values() && layer.value_inputs() != layer.key_inputs()) {
    status = Refusal(
        "memory.values",
        absl::StrCat("a tensor of ", layer.value_inputs(),
                     " columns, as values are made of other ones than keys, ", layer.key_inputs()),
        "none");
  }
  if (!status.ok()) return status;
  SharedTensors shared;
  shared.scope = "memory.";
  shared.sequence_first = claims.sequence_first;
  shared.lengths =
      absl::MakeConstSpan(memory.lengths().data(), static_cast<size_t>(memory.lengths_size()));
  if (memory.has_attention_mask()) {
    shared.attention_mask.emplace(payloads.Of("memory.attention_mask", memory.attention_mask(),
                                              v1::Memory::kAttentionMaskFieldNumber));
  }
  absl::StatusOr<TokenRows> rows =
      CheckTokenRows(payloads.Of("memory.hidden_states", memory.hidden_states(),
                                 v1::Memory::kHiddenStatesFieldNumber),
                     layer.key_inputs(), shared, claims.max_tokens);
  if (!rows.ok()) return rows.status();
  MemoryInput input{std::move(rows->layout), std::move(rows->tensor)};
  if (memory.has_values()) {
    absl::StatusOr<CheckedTensor> values =
        CheckValues(payloads.Of("memory.values", memory.values(), v1::Memory::kValuesFieldNumber),
                    input, layer.value_inputs());
    if (!values.ok()) return values.status();
    input.values = *std::move(values);
  }
  if (input.rows() <= claims.max_tokens) return input;
  return Refusal("memory",
                 absl::StrCat("at most ", claims.max_tokens,
                              " rows beside those of the request's hidden_states"),
                 absl::StrCat(input.rows()));
}

absl::Status CheckTakesMemory(const LayerShape& layer) {
  if (layer.takes_cross_kv()) return absl::OkStatus();
  if (layer.relative_positions.kind != RelativePositions::kNone) {
    return Refusal(
        "memory",
        absl::StrCat("none, as the model's positions, ", Name(layer.relative_positions.kind),
                     ", are relative to others of one sequence"),
        "one");
  }
  if (layer.window > 0) {
    return Refusal("memory",
                   absl::StrCat("none, as the layer's window of ", layer.window,
                                " is around the query in one sequence"),
                   "one");
  }
  return Refusal("memory",
                 layer.bottleneck > 0
                     ? std::string("none, as the layer attends behind a bottleneck of its own")
                     : absl::StrCat("none, as ", Name(layer.attention),
                                    " attention is of the places in one sequence"),
                 "one");
}

absl::Status CheckNeedsNoMemory(const LayerShape& layer) {
  if (!layer.needs_cross_kv()) return absl::OkStatus();
  return Refusal("memory",
                 absl::StrCat("one, with Attend, as queries are made of ", layer.hidden_size,
                              " columns, keys of ", layer.key_inputs(), " and values of ",
                              layer.value_inputs()),
                 "none");
}

}  // namespace attendant::server
