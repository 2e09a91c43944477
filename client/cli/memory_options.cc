#include "client/cli/memory_options.h"

#include <utility>

#include "client/cli/read_tensors.h"

namespace attendant::client {

void MemoryOptions::AddTo(CLI::App& app) {
  CLI::Option* memory =
      app.add_option("--memory", memory_,
                     "Attend to these rows instead: [B or 1, M, K], or [N, K] with "
                     "--memory-lengths: a FILE, or written out: \"1,0,1,0;0,2,0,2\"")
          ->type_name("FILE|ROWS");
  app.add_option("--memory-values", values_,
                 "Rows that values are made of; default: those of --memory")
      ->type_name("FILE|ROWS")
      ->needs(memory);
  app.add_option("--memory-mask", mask_, "Attention mask of the memory, [B or 1, M]")
      ->type_name("FILE|ROWS")
      ->needs(memory);
  app.add_option("--memory-lengths", lengths_, "Kept rows of each memory: 3,2")
      ->delimiter(',')
      ->type_name("N,…")
      ->needs(memory);
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
