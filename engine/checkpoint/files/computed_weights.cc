#include "engine/checkpoint/files/computed_weights.h"

#include <utility>
#include <vector>

#include "engine/checkpoint/files/file_weights.h"
#include "engine/checkpoint/files/problems.h"

namespace attendant {
namespace {

class ComputedSource : public WeightSource {
 public:
  ComputedSource(ComputedWeights computed, std::unique_ptr<WeightSource> source)
      : computed_(std::move(computed)), source_(std::move(source)) {}

  bool Has(absl::string_view name) const override {
    return computed_.contains(name) || source_->Has(name);
  }
  absl::Status Read(absl::string_view name, absl::Span<float> target) override {
    const auto found = computed_.find(name);
    if (found == computed_.end()) return source_->Read(name, target);
    const auto& [elements, compute] = found->second;
    if (static_cast<int64_t>(target.size()) != elements) {
      return InvalidArgument("tensor '", name, "' has ", elements, " elements, the target ",
                             target.size());
    }
    return compute(*source_, target);
  }
  absl::StatusOr<bool> ReadStored(absl::string_view name, DataType type,
                                  absl::Span<char> target) override {
    if (computed_.contains(name)) return false;
    return source_->ReadStored(name, type, target);
  }

 private:
  const ComputedWeights computed_;
  const std::unique_ptr<WeightSource> source_;
};

}  // namespace

std::unique_ptr<WeightSource> WithComputed(ComputedWeights computed,
                                           std::unique_ptr<WeightSource> source) {
  if (source == nullptr) {
    source =
        std::make_unique<FileWeights>(std::vector<InputFile>(), WeightPlaces(), AllowedValues());
  }
  return std::make_unique<ComputedSource>(std::move(computed), std::move(source));
}

}  // namespace attendant
