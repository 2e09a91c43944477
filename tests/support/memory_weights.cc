#include "tests/support/memory_weights.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/shape.h"
#include "tests/support/random_values.h"

namespace attendant::test_support {

bool MemoryWeights::Has(absl::string_view name) const {
  return tensors_.count(std::string(name)) > 0;
}

absl::Status MemoryWeights::Read(absl::string_view name, absl::Span<float> target) {
  const auto found = tensors_.find(std::string(name));
  if (found == tensors_.end()) return absl::NotFoundError(absl::StrCat(name, ": no such tensor"));
  if (found->second.size() != target.size()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": expected ", target.size(),
                                                   " elements, found ", found->second.size()));
  }
  reads_.emplace_back(name);
  std::copy(found->second.begin(), found->second.end(), target.begin());
  return absl::OkStatus();
}

MemoryWeights RandomWeights(const ModelDescription& description, uint32_t seed, Biases biases) {
  MemoryWeights::Tensors tensors;
  for (const WeightSpec& spec : ListWeights(description)) {
    if (spec.optional && biases == Biases::kNone) continue;
    std::vector<float> values = RandomValues(*ElementCount(spec.shape), seed++);
    const bool is_norm = absl::StrContains(spec.name, "norm") && !spec.optional;
    const bool is_linear = spec.shape.size() >= 2 && !absl::StartsWith(spec.name, "embeddings.");
    const int64_t inputs = *ElementCount(spec.shape) / std::max<int64_t>(spec.shape[0], 1);
    const float scale = is_linear ? std::sqrt(3.0f / static_cast<float>(inputs)) : 0.5f;
    for (float& value : values) value = value * scale + (is_norm ? 1.0f : 0.0f);
    tensors.emplace(spec.name, std::move(values));
  }
  return MemoryWeights(std::move(tensors));
}

}  // namespace attendant::test_support
