// A table of embeddings in the type of its file.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/data_type.h"
#include "engine/layers/state/weight_loader.h"

namespace attendant {

// Immutable and thread-safe. Without rows when made by default.
class EmbeddingTable {
 public:
  EmbeddingTable() = default;

  // Reads the tensor [rows, width] and keeps it in float32, float16 or bfloat16. No memory is taken
  // for a copy in another type.
  static absl::StatusOr<EmbeddingTable> Load(const std::string& name, int64_t rows, int64_t width,
                                             DataType type, WeightLoader& loader);

  // Write a row [width], times `scale`, in float32; or add it to `sum`.
  void Take(int64_t row, float scale, float* target) const;
  void Add(int64_t row, float* sum) const;

  int64_t bytes() const { return rows_.bytes(); }

 private:
  const char* Row(int64_t row) const { return rows_.data() + row * width_ * ByteWidth(type_); }

  int64_t width_ = 0;
  DataType type_ = DataType::kFloat32;
  SharedBuffer<char> rows_;
};

}  // namespace attendant
