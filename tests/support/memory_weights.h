// Weights of small models, in memory.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/model_description.h"
#include "engine/model/weight_source.h"

namespace attendant::testing {

class MemoryWeights : public WeightSource {
 public:
  using Tensors = std::map<std::string, std::vector<float>>;

  explicit MemoryWeights(Tensors tensors) : tensors_(std::move(tensors)) {}

  bool Has(absl::string_view name) const override;
  // NOT_FOUND: no such tensor. INVALID_ARGUMENT: another number of elements.
  absl::Status Read(absl::string_view name, absl::Span<float> target) override;

  // Names in the order in which they were read.
  const std::vector<std::string>& reads() const { return reads_; }
  Tensors& tensors() { return tensors_; }

 private:
  Tensors tensors_;
  std::vector<std::string> reads_;
};

// Every tensor of the model with seeded values: linear layers that keep the size of what goes
// through them, norm weights around 1, biases around 0 or none.
enum class Biases { kAll, kNone };
MemoryWeights RandomWeights(const ModelDescription& description, uint32_t seed,
                            Biases biases = Biases::kAll);

}  // namespace attendant::testing
