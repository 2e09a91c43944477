#include <algorithm>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "engine/checkpoint/embedded.h"
#include "engine/checkpoint/files/problems.h"

namespace attendant {
namespace {

// The article multiplies its inputs by [in, out] matrices; these are their transposes, [out, in].
class WorkedExampleWeights : public WeightSource {
 public:
  bool Has(absl::string_view name) const override { return tensors_.contains(name); }

  absl::Status Read(absl::string_view name, absl::Span<float> target) override {
    const auto tensor = tensors_.find(name);
    if (tensor == tensors_.end()) {
      return absl::NotFoundError(absl::StrCat("worked-example has no tensor '", name, "'"));
    }
    if (target.size() != tensor->second.size()) {
      return InvalidArgument("worked-example: tensor '", name, "' has ", tensor->second.size(),
                             " elements, the target ", target.size());
    }
    std::copy(tensor->second.begin(), tensor->second.end(), target.begin());
    return absl::OkStatus();
  }

 private:
  const absl::flat_hash_map<std::string, std::vector<float>> tensors_ = {
      {"layer.0.query.weight", {1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 1, 1}},
      {"layer.0.key.weight", {0, 1, 0, 1, 0, 1, 1, 1, 1, 0, 0, 0}},
      {"layer.0.value.weight", {0, 0, 1, 1, 2, 3, 0, 1, 0, 0, 3, 0}},
  };
};

}  // namespace

Checkpoint OpenWorkedExample() {
  Checkpoint checkpoint;
  ModelDescription& description = checkpoint.description;
  description.family = "worked-example";
  description.layers = 1;
  description.layer.hidden_size = 4;
  description.layer.attention.heads = 1;
  description.layer.attention.key_width = 3;
  description.layer.attention.value_width = 3;
  description.layer.attention.score_scale = 1;
  description.layer.norms.placement = NormPlacement::kNone;
  description.layer.attention.has_output_projection = false;
  checkpoint.weights = std::make_unique<WorkedExampleWeights>();
  return checkpoint;
}

}  // namespace attendant
