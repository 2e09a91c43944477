#include "engine/layers/pooling_dense.h"

#include <array>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/matrix_view.h"
#include "engine/base/thread_team.h"
#include "engine/kernels/norm/norm.h"

namespace attendant {
namespace {

// Adds several sums side by side, because one sum would wait for the latency of each addition.
double Dot(const float* a, absl::Span<const float> b) {
  constexpr size_t kLanes = 8;
  std::array<double, kLanes> sums = {};
  size_t j = 0;
  for (; j + kLanes <= b.size(); j += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] += static_cast<double>(a[j + lane]) * b[j + lane];
    }
  }
  for (; j < b.size(); ++j) sums[0] += static_cast<double>(a[j]) * b[j];
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace

absl::StatusOr<PoolingDense> PoolingDense::Load(const std::string& name, int64_t in,
                                                PoolingDense layer, WeightLoader& loader) {
  absl::StatusOr<AlignedBuffer<float>> weight = loader.ReadTable(name + ".weight", layer.out_ * in);
  if (!weight.ok()) return weight.status();
  absl::StatusOr<AlignedBuffer<float>> bias = loader.ReadOptional(name + ".bias", layer.out_);
  if (!bias.ok()) return bias.status();
  layer.weight_ = *std::move(weight);
  layer.bias_ = *std::move(bias);
  return layer;
}

absl::StatusOr<std::vector<PoolingDense>> PoolingDense::LoadAll(const std::string& name,
                                                                const PoolingDescription& pooling,
                                                                const LayerShape& layer,
                                                                WeightLoader& loader) {
  std::vector<PoolingDense> layers;
  const auto add = [&](const std::string& part, int64_t in, PoolingDense empty) {
    absl::StatusOr<PoolingDense> loaded = Load(name + part, in, std::move(empty), loader);
    if (loaded.ok()) layers.push_back(std::move(*loaded));
    return loaded.status();
  };
  if (pooling.dense_width == 0) return layers;
  const int64_t pooled = pooling.input_width(layer.hidden_size);
  absl::Status status =
      add(".dense", pooled, PoolingDense(pooling.dense_width, pooling.dense_activation));
  if (status.ok() && pooling.has_dense_norm) {
    absl::StatusOr<NormParameters> norm = loader.ReadNorm(name + ".dense_norm", pooling.dense_width,
                                                          layer.norms.kind, layer.norms.epsilon);
    status = norm.status();
    if (status.ok()) layers.back().norm_ = *std::move(norm);
  }
  if (status.ok() && pooling.output_width > 0) {
    status = add(".output", pooling.dense_width,
                 PoolingDense(pooling.output_width, Activation::kIdentity));
  }
  for (size_t i = 0; status.ok() && i < pooling.further_dense.size(); ++i) {
    const DenseShape& dense = pooling.further_dense[i];
    status = add(absl::StrCat(".further.", i), layers.back().out_,
                 PoolingDense(dense.width, dense.activation));
  }
  if (!status.ok()) return status;
  return layers;
}

std::vector<float> PoolingDense::Forward(absl::Span<const float> source) const {
  const int64_t in = static_cast<int64_t>(source.size());
  std::vector<float> target(out_);
  for (int64_t i = 0; i < out_; ++i) {
    const double bias = bias_.size() > 0 ? bias_[i] : 0.0;
    target[i] = static_cast<float>(Dot(weight_.data() + i * in, source) + bias);
  }
  const MatrixView<float> row = {target.data(), 1, out_, out_};
  Activate(activation_, row);
  if (norm_) LayerNorm(ThreadTeam(1), row, norm_->view(), row);
  return target;
}

}  // namespace attendant
