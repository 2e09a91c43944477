#include "engine/checkpoint/torch/collaborative_heads.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/files/computed_weights.h"

namespace attendant {
namespace {

// A weight of queries or keys that all heads of a layer share.
struct SharedWeight {
  std::string layer;  // the prefix of its name
  bool is_query = false;
  bool is_bias = false;

  std::string name() const {
    return absl::StrCat(layer, is_query ? "query" : "key", is_bias ? ".bias" : ".weight");
  }
};

// Returns the number of elements per output: the row length of a weight, or 1 for a bias.
int64_t Stride(const SharedWeight& weight, const LayerShape& layer) {
  return weight.is_bias ? 1 : layer.hidden_size;
}

// Writes the rows of each head: the shared ones, for queries times its row of the mixing; and with
// a content bias one more.
absl::Status SplitWeight(const SharedWeight& weight, const LayerShape& layer, bool has_content_bias,
                         WeightSource& source, absl::Span<float> target) {
  const int64_t heads = layer.attention.heads, stride = Stride(weight, layer);
  const int64_t width = layer.attention.key_width - (has_content_bias ? 1 : 0);
  std::vector<float> shared(width * stride), mixing(heads * width, 1.0f);
  std::vector<float> content(heads * stride, weight.is_query && weight.is_bias ? 1.0f : 0.0f);
  if (source.Has(weight.name())) {
    RETURN_IF_ERROR(source.Read(weight.name(), absl::MakeSpan(shared)));
  }
  if (weight.is_query) {
    RETURN_IF_ERROR(source.Read(weight.layer + "mixing", absl::MakeSpan(mixing)));
  } else if (has_content_bias && !weight.is_bias) {
    RETURN_IF_ERROR(source.Read(weight.layer + "content_bias", absl::MakeSpan(content)));
  }
  float* to = target.data();
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t i = 0; i < width * stride; ++i) {
      *to++ = mixing[h * width + i / stride] * shared[i];
    }
    if (has_content_bias) to = std::copy_n(content.begin() + h * stride, stride, to);
  }
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<WeightSource> SplitCollaborativeHeads(const ModelDescription& model,
                                                      bool has_content_bias,
                                                      std::unique_ptr<WeightSource> shared) {
  ComputedWeights split;
  for (int64_t i = 0; i < model.weight_sets(); ++i) {
    for (int kind = 0; kind < 4; ++kind) {
      const SharedWeight weight = {absl::StrCat("layer.", i, "."), kind % 2 == 0, kind / 2 == 1};
      const bool is_added = weight.is_query && weight.is_bias && has_content_bias;
      if (!is_added && !shared->Has(weight.name())) continue;
      const AttentionBlockShape& attention = model.layer.attention;
      const int64_t stride = Stride(weight, model.layer);
      split[weight.name()] = {
          attention.heads * attention.key_width * stride,
          [=, layer = model.layer](WeightSource& source, absl::Span<float> target) {
            return SplitWeight(weight, layer, has_content_bias, source, target);
          }};
    }
  }
  return WithComputed(std::move(split), std::move(shared));
}

}  // namespace attendant
