#include "engine/layers/embedding_table.h"

#include <algorithm>

#include "engine/kernels/convert.h"
#include "engine/layers/state/rows.h"

namespace attendant {
namespace {

constexpr int64_t kColumnsAtOnce = 256;

}  // namespace

EmbeddingTable::EmbeddingTable(const std::string& name, int64_t rows, int64_t width, DataType type,
                               WeightLoader& loader)
    : width_(width), type_(type) {
  if (rows > 0) rows_ = loader.Keep(loader.ReadStoredTable(name, rows * width, type));
}

void EmbeddingTable::Take(int64_t row, float scale, float* target) const {
  ToFloat(type_, Row(row), width_, target);
  if (scale == 1) return;
  for (int64_t j = 0; j < width_; ++j) target[j] *= scale;
}

void EmbeddingTable::Add(int64_t row, float* sum) const {
  if (type_ == DataType::kFloat32) {
    return AddRow(reinterpret_cast<const float*>(Row(row)), width_, sum);
  }
  float values[kColumnsAtOnce];
  for (int64_t first = 0; first < width_; first += kColumnsAtOnce) {
    const int64_t count = std::min(kColumnsAtOnce, width_ - first);
    ToFloat(type_, Row(row) + first * ByteWidth(type_), count, values);
    AddRow(values, count, sum + first);
  }
}

}  // namespace attendant
