#include "engine/layers/attention_pooling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"

namespace attendant {
namespace {

// Wider models allocate memory in each call.
constexpr size_t kOnStack = 2048;
using Sums = absl::InlinedVector<double, kOnStack>;

// Sums in a fixed order, whatever the optimization level.
double Dot(const float* a, const float* b, int64_t width) {
  constexpr int64_t kLanes = 8;
  std::array<double, kLanes> sums{};
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] += static_cast<double>(a[i + lane]) * b[i + lane];
    }
  }
  for (; i < width; ++i) sums[0] += static_cast<double>(a[i]) * b[i];
  double sum = 0;
  for (const double lane : sums) sum += lane;
  return sum;
}

// Computes the mean of the rows, weighted by the softmax of their products with `query`, in one
// pass: weights are relative to the largest product so far.
void WeightedMean(MatrixView<const float> rows, const float* query, Sums& mean) {
  std::fill(mean.begin(), mean.end(), 0.0);
  double largest = -std::numeric_limits<double>::infinity(), total = 0;
  for (int64_t r = 0; r < rows.rows; ++r) {
    const float* row = rows.row(r);
    const double score = Dot(row, query, rows.cols);
    if (score > largest) {
      const double factor = std::exp(largest - score);
      for (double& sum : mean) sum *= factor;
      total *= factor;
      largest = score;
    }
    const double weight = std::exp(score - largest);
    for (int64_t j = 0; j < rows.cols; ++j) mean[j] += weight * row[j];
    total += weight;
  }
  for (double& sum : mean) sum /= total;
}

// Returns the projected probe, which is the query of all heads, times the scale of scores.
std::vector<double> ReadQuery(const std::string& name, int64_t width, double scale,
                              WeightLoader& loader) {
  const AlignedBuffer<float> probe = loader.ReadTable(name + ".probe", width);
  const AlignedBuffer<float> weight = loader.ReadTable(name + ".query.weight", width * width);
  const AlignedBuffer<float> bias = loader.ReadOptional(name + ".query.bias", width);
  std::vector<double> query(static_cast<size_t>(width));
  for (int64_t i = 0; i < width; ++i) {
    const double added = bias.size() > 0 ? bias[i] : 0.0;
    query[i] = scale * (Dot(weight.data() + i * width, probe.data(), width) + added);
  }
  return query;
}

// Returns the product of each head's query with its rows of the key projection, [H, E].
AlignedBuffer<float> FoldKeys(const std::string& name, const std::vector<double>& query,
                              int64_t heads, WeightLoader& loader) {
  const auto width = static_cast<int64_t>(query.size());
  const AlignedBuffer<float> weight = loader.ReadTable(name + ".key.weight", width * width);
  loader.ReadOptional(name + ".key.bias", width);
  AlignedBuffer<float> folded(heads * width);
  std::vector<double> sums(query.size());
  for (int64_t head = 0; head < heads; ++head) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (int64_t i = head * width / heads; i < (head + 1) * width / heads; ++i) {
      const float* row = weight.data() + i * width;
      for (int64_t j = 0; j < width; ++j) sums[j] += query[i] * row[j];
    }
    std::copy(sums.begin(), sums.end(), folded.data() + head * width);
  }
  return folded;
}

}  // namespace

AttentionPooling::AttentionPooling(const std::string& name, const LayerShape& layer,
                                   WeightLoader& loader)
    : heads_(layer.attention.heads) {
  const int64_t width = layer.hidden_size;
  const double scale = 1 / std::sqrt(static_cast<double>(width / heads_));
  const std::vector<double> query = ReadQuery(name, width, scale, loader);
  queries_ = loader.Keep(FoldKeys(name, query, heads_, loader));
  const AlignedBuffer<float> value = loader.ReadTable(name + ".value.weight", width * width);
  AlignedBuffer<float> transposed(width * width);
  for (int64_t i = 0; i < width; ++i) {
    for (int64_t j = 0; j < width; ++j) transposed[j * width + i] = value[i * width + j];
  }
  values_ = loader.Keep(std::move(transposed));
  value_bias_ = loader.Keep(loader.ReadOptional(name + ".value.bias", width));
}

void AttentionPooling::Pool(MatrixView<const float> hidden_states, absl::Span<float> target) const {
  const int64_t width = hidden_states.cols, head_width = width / heads_;
  Sums mean(static_cast<size_t>(width)), context(static_cast<size_t>(head_width));
  for (int64_t head = 0; head < heads_; ++head) {
    const int64_t first = head * head_width;
    WeightedMean(hidden_states, queries_.data() + head * width, mean);
    for (int64_t d = 0; d < head_width; ++d) {
      context[d] = value_bias_.size() > 0 ? value_bias_[first + d] : 0.0;
    }
    for (int64_t j = 0; j < width; ++j) {
      const float* outputs = values_.data() + j * width + first;
      for (int64_t d = 0; d < head_width; ++d) context[d] += mean[j] * outputs[d];
    }
    std::copy(context.begin(), context.end(), target.begin() + first);
  }
}

}  // namespace attendant
