#include "engine/checkpoint/low_rank_weights.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/types/span.h"
#include "engine/base/status_macros.h"

namespace attendant {
namespace {

// Returns the transpose of a matrix [rows, columns].
std::vector<float> Transpose(const std::vector<float>& matrix, int64_t rows, int64_t columns) {
  std::vector<float> transposed(matrix.size());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) transposed[c * rows + r] = matrix[r * columns + c];
  }
  return transposed;
}

// Not thread-safe.
class LowRankWeights : public WeightSource {
 public:
  LowRankWeights(std::unique_ptr<WeightSource> base, std::unique_ptr<WeightSource> factors,
                 LowRankProducts products)
      : base_(std::move(base)), factors_(std::move(factors)), products_(std::move(products)) {}

  bool Has(absl::string_view name) const override { return base_->Has(name); }

  absl::Status Read(absl::string_view name, absl::Span<float> target) override {
    RETURN_IF_ERROR(base_->Read(name, target));
    const auto product = products_.find(std::string(name));
    return product == products_.end() ? absl::OkStatus() : Add(product->second, target);
  }

  absl::StatusOr<bool> ReadStored(absl::string_view name, DataType type,
                                  absl::Span<char> target) override {
    if (products_.contains(std::string(name))) return false;
    return base_->ReadStored(name, type, target);
  }

 private:
  absl::Status Add(const LowRankProduct& product, absl::Span<float> target);

  const std::unique_ptr<WeightSource> base_;
  const std::unique_ptr<WeightSource> factors_;  // null: base_
  const LowRankProducts products_;
};

absl::Status LowRankWeights::Add(const LowRankProduct& product, absl::Span<float> target) {
  WeightSource& factors = factors_ == nullptr ? *base_ : *factors_;
  const int64_t rank = product.rank, columns = product.columns;
  std::vector<float> left(product.rows * rank), right(rank * columns);
  RETURN_IF_ERROR(factors.Read(product.left, absl::MakeSpan(left)));
  RETURN_IF_ERROR(factors.Read(product.right, absl::MakeSpan(right)));
  if (product.transposed) {
    left = Transpose(left, rank, product.rows);
    right = Transpose(right, columns, rank);
  }
  std::vector<float> sum(columns);
  const int64_t rows = static_cast<int64_t>(target.size()) / columns;
  for (int64_t r = 0; r < rows; ++r) {
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

WeightShapes ShapesOf(const ModelDescription& description) {
  WeightShapes shapes;
  for (const WeightSpec& spec : ListWeights(description)) shapes[spec.name] = spec.shape;
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
    row = product.first_row + shape->second[0];
    products.emplace(weight, product);
  }
  return row == product.rows ? products : LowRankProducts();
}

void AddProducts(LowRankProducts products, std::unique_ptr<WeightSource> factors,
                 Checkpoint& checkpoint) {
  for (const auto& [name, product] : products) {
    checkpoint.description.linear_type = DataType::kFloat32;  // sums are not rounded
    // The sum of a table and a product would be rounded to the type of the file.
    if (absl::StartsWith(name, "embeddings.") && checkpoint.description.embeddings) {
      checkpoint.description.embeddings->table_type = DataType::kFloat32;
    }
  }
  checkpoint.weights = std::make_unique<LowRankWeights>(std::move(checkpoint.weights),
                                                        std::move(factors), std::move(products));
}

}  // namespace attendant
