// An embedding table in the data type of its file.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/aligned_buffer.h"
#include "engine/base/data_type.h"
#include "engine/layers/state/weight_loader.h"

namespace attendant {

// Immutable and thread-safe. A default-constructed table has no rows.
class EmbeddingTable {
 public:
  EmbeddingTable() = default;

  // Reads the tensor [rows, width] unless `rows` is 0, and stores it as `type`: float32, float16 or
  // bfloat16. Makes no temporary copy in another type.
  EmbeddingTable(const std::string& name, int64_t rows, int64_t width, DataType type,
                 WeightLoader& loader);

  // Writes row [width] times `scale` to `target`, in float32.
  void Take(int64_t row, float scale, float* target) const;
  // Adds row [width] to `sum`.
  void Add(int64_t row, float* sum) const;

 private:
  const char* Row(int64_t row) const { return rows_.data() + row * width_ * ByteWidth(type_); }

  int64_t width_ = 0;
  DataType type_ = DataType::kFloat32;
  SharedBuffer<char> rows_;
};

}  // namespace attendant
