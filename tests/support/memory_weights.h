// MemoryWeights, the weights of small models in memory.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/model_description.h"
#include "engine/model/weight_source.h"

namespace attendant::test_support {

// Owns the tensors. Not thread-safe.
class MemoryWeights : public WeightSource {
 public:
  using Tensors = std::map<std::string, std::vector<float>>;

  explicit MemoryWeights(Tensors tensors) : tensors_(std::move(tensors)) {}

  bool Has(absl::string_view name) const override;
  // NOT_FOUND: there is no such tensor. INVALID_ARGUMENT: it has another number of elements.
  absl::Status Read(absl::string_view name, absl::Span<float> target) override;

  // The names in the order in which they were read.
  const std::vector<std::string>& reads() const { return reads_; }
  Tensors& tensors() { return tensors_; }

 private:
  Tensors tensors_;
  std::vector<std::string> reads_;
};

// Returns every tensor of the model with seeded random values: linear layers that roughly keep the
// magnitude of their input, norm weights around 1, and biases around 0 or none.
enum class Biases { kAll, kNone };
MemoryWeights RandomWeights(const ModelDescription& description, uint32_t seed,
                            Biases biases = Biases::kAll);

}  // namespace attendant::test_support
