#include "engine/checkpoint/collaborative_heads.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace attendant {
namespace {

class CollaborativeWeights : public WeightSource {
 public:
  CollaborativeWeights(const LayerShape& layer, bool has_content_bias,
                       std::unique_ptr<WeightSource> shared)
      : heads_(layer.heads),
        width_(layer.key_width - (has_content_bias ? 1 : 0)),
        inputs_(layer.hidden_size),
        has_content_bias_(has_content_bias),
        shared_(std::move(shared)) {}

  bool Has(absl::string_view name) const override {
    return name == kQueryBias ? has_content_bias_ : shared_->Has(name);
  }

  absl::Status Read(absl::string_view name, absl::Span<float> target) override {
    if (name == "layer.0.query.weight") return ReadQueries(target);
    if (name == "layer.0.key.weight") return ReadKeys(target);
    if (name != kQueryBias) return shared_->Read(name, target);
    std::fill(target.begin(), target.end(), 0.0f);
    for (int64_t h = 0; h < heads_; ++h) target[(h + 1) * (width_ + 1) - 1] = 1;
    return absl::OkStatus();
  }

 private:
  static constexpr absl::string_view kQueryBias = "layer.0.query.bias";

  absl::Status ReadQueries(absl::Span<float> target) {
    std::vector<float> queries(width_ * inputs_), mixing(heads_ * width_);
    absl::Status status = shared_->Read("layer.0.query.weight", absl::MakeSpan(queries));
    if (status.ok()) status = shared_->Read("layer.0.mixing", absl::MakeSpan(mixing));
    if (!status.ok()) return status;
    std::fill(target.begin(), target.end(), 0.0f);
    for (int64_t h = 0; h < heads_; ++h) {
      for (int64_t i = 0; i < width_ * inputs_; ++i) {
        Head(target, h)[i] = mixing[h * width_ + i / inputs_] * queries[i];
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadKeys(absl::Span<float> target) {
    std::vector<float> keys(width_ * inputs_), bias(has_content_bias_ ? heads_ * inputs_ : 0);
    absl::Status status = shared_->Read("layer.0.key.weight", absl::MakeSpan(keys));
    if (status.ok() && has_content_bias_) {
      status = shared_->Read("layer.0.content_bias", absl::MakeSpan(bias));
    }
    if (!status.ok()) return status;
    for (int64_t h = 0; h < heads_; ++h) {
      float* end = std::copy(keys.begin(), keys.end(), Head(target, h));
      if (has_content_bias_) std::copy_n(bias.begin() + h * inputs_, inputs_, end);
    }
    return absl::OkStatus();
  }

  float* Head(absl::Span<float> target, int64_t head) const {
    return target.data() + head * (width_ + (has_content_bias_ ? 1 : 0)) * inputs_;
  }

  int64_t heads_;
  int64_t width_;  // of what is shared
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
