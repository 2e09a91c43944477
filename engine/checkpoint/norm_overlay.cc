#include "engine/checkpoint/norm_overlay.h"

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "engine/base/shape.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/files/computed_weights.h"
#include "engine/checkpoint/files/problems.h"
#include "engine/checkpoint/files/weight_binder.h"
#include "engine/checkpoint/files/weight_files.h"

namespace attendant {
namespace {

bool IsOfNorm(absl::string_view canonical) {
  return absl::EndsWith(canonical, "norm.weight") || absl::EndsWith(canonical, "norm.bias");
}

// Maps canonical names to the names that the tensors have in the base's files.
std::map<std::string, std::string> NamesInFiles(const Checkpoint& base) {
  std::map<std::string, std::string> names;
  for (const CheckpointTensor& tensor : base.tensors) {
    for (const std::string& weight : tensor.weights) names.emplace(weight, tensor.name);
  }
  return names;
}

}  // namespace

absl::StatusOr<Checkpoint> OpenNormOverlay(const std::string& path, const Checkpoint& base,
                                           const CheckpointOptions& options) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == path.npos ? "." : path.substr(0, slash);
  const std::string file = slash == path.npos ? path : path.substr(slash + 1);
  WeightBinder binder(path);
  RETURN_IF_ERROR(binder.AddFiles("", OpenWeightFile(folder, file, options)));
  const std::map<std::string, std::string> names = NamesInFiles(base);
  for (WeightSpec& spec : ListWeights(base.description)) {
    if (!IsOfNorm(spec.name)) continue;
    spec.optional = true;
    std::vector<TensorPart> places = {{spec.name}};
    if (const auto named = names.find(spec.name); named != names.end()) {
      places.insert(places.begin(), {named->second});
    }
    binder.Bind(spec, places);
  }
  for (const std::string& name : binder.Unbound()) {
    binder.Refuse(binder.Show(name), ": expected a norm of the base model, named as in its files");
  }
  Checkpoint overlay;
  overlay.description = base.description;
  RETURN_IF_ERROR(binder.Finish(options, overlay));
  if (overlay.tensors.empty()) {
    return InvalidArgument(path, ": expected norms of the base model; the file has no tensors");
  }
  return overlay;
}

absl::StatusOr<Checkpoint> OpenPrunedOverlay(const std::string& path, Checkpoint pruned,
                                             const CheckpointOptions& options) {
  ASSIGN_OR_RETURN(Checkpoint overlay, OpenNormOverlay(path, pruned, options));
  const std::shared_ptr<WeightSource> source = std::move(pruned.weights);
  ComputedWeights others;
  for (const WeightSpec& spec : ListWeights(pruned.description)) {
    if (IsOfNorm(spec.name) || !source->Has(spec.name)) continue;
    others[spec.name] = {*ElementCount(spec.shape),
                         [source, name = spec.name](WeightSource&, absl::Span<float> target) {
                           return source->Read(name, target);
                         }};
  }
  overlay.weights = WithComputed(std::move(others), std::move(overlay.weights));
  return overlay;
}

}  // namespace attendant
