#include "engine/checkpoint/norm_overlay.h"

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "engine/base/status_macros.h"
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

// Reads norms from one source and all other weights from another. Not thread-safe.
class OverlaidWeights : public WeightSource {
 public:
  OverlaidWeights(std::unique_ptr<WeightSource> norms, std::unique_ptr<WeightSource> others)
      : norms_(std::move(norms)), others_(std::move(others)) {}

  bool Has(absl::string_view name) const override { return Of(name).Has(name); }
  absl::Status Read(absl::string_view name, absl::Span<float> target) override {
    return Of(name).Read(name, target);
  }
  absl::StatusOr<bool> ReadStored(absl::string_view name, DataType type,
                                  absl::Span<char> target) override {
    return Of(name).ReadStored(name, type, target);
  }

 private:
  WeightSource& Of(absl::string_view name) const { return IsOfNorm(name) ? *norms_ : *others_; }

  const std::unique_ptr<WeightSource> norms_;
  const std::unique_ptr<WeightSource> others_;
};

}  // namespace

absl::StatusOr<Checkpoint> OpenNormOverlay(const std::string& path, const Checkpoint& base,
                                           const CheckpointOptions& options) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == path.npos ? "." : path.substr(0, slash);
  const std::string file = slash == path.npos ? path : path.substr(slash + 1);
  ASSIGN_OR_RETURN(WeightFiles files, OpenWeightFile(folder, file, options));
  WeightBinder binder(path);
  binder.AddFiles("", std::move(files));

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
  absl::StatusOr<Checkpoint> overlay = OpenNormOverlay(path, pruned, options);
  if (!overlay.ok()) return overlay;
  overlay->weights =
      std::make_unique<OverlaidWeights>(std::move(overlay->weights), std::move(pruned.weights));
  return overlay;
}

}  // namespace attendant
