#include "engine/checkpoint/low_rank_weights.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/types/span.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/files/computed_weights.h"

namespace attendant {
namespace {

// Adds the product of `factors` to `target`.
absl::Status Add(const LowRankProduct& product, WeightSource& factors, absl::Span<float> target) {
  const int64_t rank = product.rank, columns = product.columns;
  std::vector<float> left(product.rows * rank), right(rank * columns);
  RETURN_IF_ERROR(factors.Read(product.left, absl::MakeSpan(left)));
  RETURN_IF_ERROR(factors.Read(product.right, absl::MakeSpan(right)));
  std::vector<float> sum(columns);
  for (int64_t r = 0; r < product.weight_rows; ++r) {
    std::fill(sum.begin(), sum.end(), 0.0f);
    for (int64_t k = 0; k < rank; ++k) {
      const float factor = left[(product.first_row + r) * rank + k];
      const float* row = right.data() + k * columns;
      for (int64_t c = 0; c < columns; ++c) sum[c] += factor * row[c];
    }
    float* to = target.data() + r * columns;
    for (int64_t c = 0; c < columns; ++c) to[c] += product.scale * sum[c];
  }
  return absl::OkStatus();
}

}  // namespace

WeightShapes ShapesOf(const ModelDescription& model) {
  WeightShapes shapes;
  for (WeightSpec& spec : ListWeights(model)) shapes[spec.name] = std::move(spec.shape);
  return shapes;
}

LowRankProducts OfTensor(const CheckpointTensor& tensor, const WeightShapes& shapes,
                         LowRankProduct product) {
  LowRankProducts products;
  if (tensor.shape.size() != 2 || tensor.is_interleaved) return products;
  product.rows = tensor.shape[0];
  product.columns = tensor.shape[1];
  int64_t row = 0;
  for (const std::string& weight : tensor.weights) {
    const auto shape = shapes.find(weight);
    if (shape == shapes.end() || shape->second.size() != 2 || shape->second[1] != product.columns) {
      return {};
    }
    product.first_row = shape->second == tensor.shape ? 0 : row;  // a tied table is two weights
    product.weight_rows = shape->second[0];
    row = product.first_row + product.weight_rows;
    products.emplace(weight, product);
  }
  return row == product.rows ? products : LowRankProducts();
}

void AddProducts(const LowRankProducts& products, std::shared_ptr<WeightSource> factors,
                 Checkpoint& checkpoint) {
  ComputedWeights sums;
  for (const auto& [name, product] : products) {
    checkpoint.description.linear_type = DataType::kFloat32;  // sums are not rounded
    // The sum of a table and a product would be rounded to the type of the file.
    if (absl::StartsWith(name, "embeddings.") && checkpoint.description.embeddings) {
      checkpoint.description.embeddings->table_type = DataType::kFloat32;
    }
    const auto add = [=, name = name, product = product](WeightSource& base,
                                                         absl::Span<float> target) {
      RETURN_IF_ERROR(base.Read(name, target));
      return Add(product, factors == nullptr ? base : *factors, target);
    };
    sums[name] = {product.weight_rows * product.columns, add};
  }
  checkpoint.weights = WithComputed(std::move(sums), std::move(checkpoint.weights));
}

}  // namespace attendant
