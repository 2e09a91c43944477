#include "engine/checkpoint/torch/module_ends.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/checkpoint/families/bounds.h"

namespace attendant {
namespace {

constexpr Named<Sinusoids> kSinusoids[] = {
    {"interleaved", Sinusoids::kInterleaved},
    {"halves", Sinusoids::kHalves},
};

constexpr Named<PoolingMode> kPoolings[] = {
    {"first_token", PoolingMode::kFirstToken},
    {"last_token", PoolingMode::kLastToken},
    {"mean", PoolingMode::kMean},
    {"max", PoolingMode::kMax},
};

constexpr char kPositions[] = "front.positions";
constexpr int64_t kNarrowestHalves = 4;

// Returns size `dimension` of a linear layer's matrix. If there is no such matrix, or it is too
// large, adds a problem and returns 1.
int64_t SizeOf(const char* key, const std::string& stem, int dimension, WeightBinder& binder) {
  const std::string name = stem + ".weight";
  const FileTensor* tensor = binder.Find(name);
  if (tensor != nullptr && tensor->shape.size() == 2) {
    const int64_t size = tensor->shape[dimension];
    if (size >= kHiddenSizeRange.lowest && size <= kHiddenSizeRange.highest) return size;
  }
  binder.problems().Add(absl::StrCat(
      key, ": expected a linear layer of 1 to ", kHiddenSizeRange.highest,
      " inputs and outputs, found ",
      tensor == nullptr ? absl::StrCat("no tensor ", Quoted(name)) : binder.Show(name)));
  return 1;
}

class SinusoidWeights : public WeightSource {
 public:
  SinusoidWeights(std::unique_ptr<WeightSource> weights, std::vector<float> sinusoids)
      : weights_(std::move(weights)), sinusoids_(std::move(sinusoids)) {}

  bool Has(absl::string_view name) const override {
    return name == kPositions || weights_->Has(name);
  }
  absl::Status Read(absl::string_view name, absl::Span<float> target) override {
    if (name != kPositions) return weights_->Read(name, target);
    if (target.size() != sinusoids_.size()) {
      return absl::InvalidArgumentError(absl::StrCat("the sinusoids have ", sinusoids_.size(),
                                                     " elements, the target ", target.size()));
    }
    std::copy(sinusoids_.begin(), sinusoids_.end(), target.begin());
    return absl::OkStatus();
  }

 private:
  const std::unique_ptr<WeightSource> weights_;
  const std::vector<float> sinusoids_;
};

}  // namespace

ModuleEnds ReadModuleEnds(ConfigReader& config, Keys& keys) {
  ModuleEnds ends;
  ends.input_projection = config.Text({"input_projection"}, "");
  ends.output_projection = config.Text({"output_projection"}, "");
  keys.insert(keys.end(), {"input_projection", "output_projection", "sinusoids"});
  if (!ends.output_projection.empty()) {
    ends.pooling = config.Choice<PoolingMode>({"pooling"}, kPoolings);
    keys.push_back("pooling");
  }
  if (config.Has({"sinusoids"})) {
    ends.sinusoids = config.Choice<Sinusoids>({"sinusoids"}, kSinusoids);
    ends.max_positions = config.Integer({"max_positions"}, kPositionRange);
    keys.push_back("max_positions");
  }
  return ends;
}

void DescribeModuleEnds(const ModuleEnds& ends, WeightBinder& binder, ModelDescription& model) {
  if (!ends.input_projection.empty() || ends.sinusoids != Sinusoids::kNone) {
    PatchEmbeddingShape patch_embedding;
    patch_embedding.positions = ends.max_positions;
    if (!ends.input_projection.empty()) {
      patch_embedding.feature_width = SizeOf("input_projection", ends.input_projection, 1, binder);
    }
    model.patch_embedding = patch_embedding;
  }
  const int64_t width = model.layer.hidden_size;
  if (ends.sinusoids == Sinusoids::kHalves && (width < kNarrowestHalves || width % 2 != 0)) {
    binder.problems().Add(absl::StrCat("sinusoids: expected an even width of at least ",
                                       kNarrowestHalves, " for halves, found ", width));
  }
  if (ends.output_projection.empty()) return;
  PoolingDescription head;
  head.modes = {ends.pooling};
  head.dense_width = SizeOf("output_projection", ends.output_projection, 0, binder);
  model.classifier = head;
}

bool BindModuleEnd(const ModuleEnds& ends, const WeightSpec& spec, WeightBinder& binder) {
  if (spec.name == kPositions) return true;
  absl::string_view kind = spec.name;
  if (absl::ConsumePrefix(&kind, "front.projection")) {
    binder.Bind(spec, {{absl::StrCat(ends.input_projection, kind)}});
    return true;
  }
  if (!absl::ConsumePrefix(&kind, "classifier.dense")) return false;
  binder.Bind(spec, {{absl::StrCat(ends.output_projection, kind)}});
  return true;
}

std::vector<float> MakeSinusoids(Sinusoids kind, int64_t positions, int64_t width) {
  std::vector<float> table;
  const bool interleaved = kind == Sinusoids::kInterleaved;
  const int64_t half = width / 2;
  const double steps = interleaved ? static_cast<double>(width) / 2 : static_cast<double>(half - 1);
  for (int64_t position = 0; position < positions; ++position) {
    for (int64_t j = 0; j < width; ++j) {
      const int64_t i = interleaved ? j / 2 : j % half;
      const double angle =
          static_cast<double>(position) * std::pow(10000.0, -static_cast<double>(i) / steps);
      const bool is_sine = interleaved ? j % 2 == 0 : j < half;
      table.push_back(static_cast<float>(is_sine ? std::sin(angle) : std::cos(angle)));
    }
  }
  return table;
}

std::unique_ptr<WeightSource> WithSinusoids(const ModuleEnds& ends, int64_t width,
                                            std::unique_ptr<WeightSource> weights) {
  if (ends.sinusoids == Sinusoids::kNone || weights == nullptr) return weights;
  return std::make_unique<SinusoidWeights>(
      std::move(weights), MakeSinusoids(ends.sinusoids, ends.max_positions, width));
}

}  // namespace attendant
