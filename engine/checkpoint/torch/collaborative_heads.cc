#include "engine/checkpoint/torch/collaborative_heads.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/base/status_macros.h"

namespace attendant {
namespace {

class CollaborativeWeights : public WeightSource {
 public:
  CollaborativeWeights(const LayerShape& layer, bool has_content_bias,
                       std::unique_ptr<WeightSource> shared)
      : heads_(layer.attention.heads),
        width_(layer.attention.key_width - (has_content_bias ? 1 : 0)),
        inputs_(layer.hidden_size),
        has_content_bias_(has_content_bias),
        shared_(std::move(shared)) {}

  bool Has(absl::string_view name) const override {
    return (has_content_bias_ && IsOfLayer(name, "query.bias")) || shared_->Has(name);
  }

  absl::Status Read(absl::string_view name, absl::Span<float> target) override {
    for (const char* kind : {"weight", "bias"}) {
      if (IsOfLayer(name, absl::StrCat("query.", kind))) return ReadQueries(name, target);
      if (IsOfLayer(name, absl::StrCat("key.", kind))) return ReadKeys(name, target);
    }
    return shared_->Read(name, target);
  }

 private:
  // Returns true if `name` is "layer.<i>." followed by `rest`.
  static bool IsOfLayer(absl::string_view name, absl::string_view rest) {
    return absl::ConsumePrefix(&name, "layer.") && name.substr(name.find('.') + 1) == rest;
  }

  static std::string Beside(absl::string_view name, const char* other) {
    const size_t layer_end = name.find('.', name.find('.') + 1) + 1;
    return absl::StrCat(name.substr(0, layer_end), other);
  }

  // Returns the number of elements per output: the row length of a weight, or 1 for a bias.
  int64_t Stride(absl::string_view name) const {
    return absl::ConsumeSuffix(&name, ".bias") ? 1 : inputs_;
  }

  absl::Status ReadQueries(absl::string_view name, absl::Span<float> target) {
    const int64_t stride = Stride(name);
    std::vector<float> queries(width_ * stride), mixing(heads_ * width_);
    RETURN_IF_ERROR(shared_->Read(Beside(name, "mixing"), absl::MakeSpan(mixing)));
    if (shared_->Has(name)) {
      RETURN_IF_ERROR(shared_->Read(name, absl::MakeSpan(queries)));
    }
    std::fill(target.begin(), target.end(), 0.0f);
    for (int64_t h = 0; h < heads_; ++h) {
      float* head = Head(target, h, stride);
      for (int64_t i = 0; i < width_ * stride; ++i) {
        head[i] = mixing[h * width_ + i / stride] * queries[i];
      }
      if (has_content_bias_ && IsOfLayer(name, "query.bias")) head[width_] = 1;
    }
    return absl::OkStatus();
  }

  absl::Status ReadKeys(absl::string_view name, absl::Span<float> target) {
    const int64_t stride = Stride(name);
    const bool has_content = has_content_bias_ && IsOfLayer(name, "key.weight");
    std::vector<float> keys(width_ * stride), content(has_content ? heads_ * inputs_ : 0);
    RETURN_IF_ERROR(shared_->Read(name, absl::MakeSpan(keys)));
    if (has_content) {
      RETURN_IF_ERROR(shared_->Read(Beside(name, "content_bias"), absl::MakeSpan(content)));
    }
    std::fill(target.begin(), target.end(), 0.0f);
    for (int64_t h = 0; h < heads_; ++h) {
      float* end = std::copy(keys.begin(), keys.end(), Head(target, h, stride));
      if (has_content) std::copy_n(content.begin() + h * inputs_, inputs_, end);
    }
    return absl::OkStatus();
  }

  float* Head(absl::Span<float> target, int64_t head, int64_t stride) const {
    return target.data() + head * (width_ + (has_content_bias_ ? 1 : 0)) * stride;
  }

  int64_t heads_;
  int64_t width_;  // the number of shared columns
  int64_t inputs_;
  bool has_content_bias_;
  std::unique_ptr<WeightSource> shared_;
};

}  // namespace

std::unique_ptr<WeightSource> SplitCollaborativeHeads(const LayerShape& layer,
                                                      bool has_content_bias,
                                                      std::unique_ptr<WeightSource> shared) {
  return std::make_unique<CollaborativeWeights>(layer, has_content_bias, std::move(shared));
}

}  // namespace attendant
