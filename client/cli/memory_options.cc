#include "client/cli/memory_options.h"

#include <utility>

#include "client/cli/read_tensors.h"
#include "client/flags/flag_kinds.h"

namespace attendant::client {

Flags MemoryOptions::MemoryFlags(bool required) {
  return {
      {.name = "--memory",
       .placeholder = "FILE|ROWS",
       .help = "Rows to attend to instead of the input, [B or 1, M, K], or [N, K] with "
               "--memory-lengths: a file, or rows such as \"1,0,1,0;0,2,0,2\"",
       .kind = TextKind(memory_),
       .required = required},
      {"--memory-values", "FILE|ROWS", "Rows for the value projection",
       TextKind(values_, "the rows of --memory"), "--memory"},
      {"--memory-mask", "FILE|ROWS", "Attention mask of the memory, [B or 1, M]", TextKind(mask_),
       "--memory"},
      {"--memory-lengths", "N,...", "Number of kept rows of each memory, such as 3,2",
       ListKind(lengths_), "--memory"},
  };
}

absl::StatusOr<std::optional<Memory>> MemoryOptions::Read(Layout layout) const {
  if (memory_.empty()) return std::nullopt;
  Memory memory;
  memory.lengths = lengths_;
  absl::StatusOr<Tensor> rows = ReadFloats("--memory", memory_);
  if (!rows.ok()) return rows.status();
  memory.hidden_states = *std::move(rows);
  if (!values_.empty()) {
    absl::StatusOr<Tensor> values = ReadFloats("--memory-values", values_);
    if (!values.ok()) return values.status();
    memory.values = *std::move(values);
  }
  absl::Status status = ReadIntegers("--memory-mask", mask_, memory.attention_mask, nullptr);
  if (!status.ok()) return status;
  if (memory.attention_mask) AddBatchDimension(2, Layout::kBatchFirst, *memory.attention_mask);
  if (!lengths_.empty()) return memory;
  AddBatchDimension(3, layout, memory.hidden_states);
  if (memory.values) AddBatchDimension(3, layout, *memory.values);
  return memory;
}

}  // namespace attendant::client
