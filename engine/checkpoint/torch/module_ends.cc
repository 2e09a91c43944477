#include "engine/checkpoint/torch/module_ends.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

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

constexpr int64_t kNarrowestHalves = 4;

// Returns size `dimension` of a linear layer's matrix. If there is no such matrix, or it is too
// large, adds a problem and returns 1.
int64_t SizeOf(const char* key, const std::string& stem, int dimension, WeightBinder& binder) {
  const std::string name = stem + ".weight";
  const FileTensor* tensor = binder.FindMatrix(name);
  const int64_t size = tensor == nullptr ? 0 : tensor->shape[dimension];
  if (size >= kHiddenSizeRange.lowest && size <= kHiddenSizeRange.highest) return size;
  binder.RefuseTensor(name, "a linear layer of 1..", kHiddenSizeRange.highest,
                      " inputs and outputs for ", key);
  return 1;
}

}  // namespace

ModuleEnds ReadModuleEnds(ConfigReader& config) {
  ModuleEnds ends;
  ends.input_projection = config.Text({"input_projection"}, "");
  ends.output_projection = config.Text({"output_projection"}, "");
  if (!ends.output_projection.empty()) {
    ends.pooling = config.Choice<PoolingMode>({"pooling"}, kPoolings);
  }
  if (config.Has({"sinusoids"})) {
    ends.sinusoids = config.Choice<Sinusoids>({"sinusoids"}, kSinusoids);
    ends.max_positions = config.Integer({"max_positions"}, kPositionRange);
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
    binder.Refuse("sinusoids: expected an even width of at least ", kNarrowestHalves,
                  " for halves; got ", width);
  }
  if (ends.output_projection.empty()) return;
  PoolingDescription head;
  head.modes = {ends.pooling};
  head.dense_width = SizeOf("output_projection", ends.output_projection, 0, binder);
  model.classifier = head;
}

bool BindModuleEnd(const ModuleEnds& ends, const WeightSpec& spec, WeightBinder& binder) {
  if (spec.name == kSinusoidsName) return true;
  absl::string_view kind = spec.name;
  if (absl::ConsumePrefix(&kind, "front.projection")) {
    binder.Bind(spec, {{absl::StrCat(ends.input_projection, kind)}});
    return true;
  }
  if (!absl::ConsumePrefix(&kind, "classifier.dense")) return false;
  binder.Bind(spec, {{absl::StrCat(ends.output_projection, kind)}});
  return true;
}

}  // namespace attendant
