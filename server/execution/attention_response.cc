#include "server/execution/attention_response.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace attendant::server {
namespace {

// Calls visit(row of [B, heads, S], sequence, its probabilities [length]) for every query; with
// null for one that is padding.
template <typename Visit>
void ForEachQuery(const DenseProbabilities& dense, const Visit& visit) {
  const TokenLayout& layout = dense.layout;
  const float* next = dense.data;
  int64_t row = dense.first_sequence * dense.heads * layout.padded_length;
  for (int64_t b = 0; b < layout.sequences; ++b) {
    const absl::Span<const int32_t> positions = layout.positions_of(b);
    for (int64_t h = 0; h < dense.heads; ++h) {
      auto kept = positions.begin();
      for (int64_t s = 0; s < layout.padded_length; ++s, ++row) {
        if (kept == positions.end() || *kept != s) {
          visit(row, b, nullptr);
          continue;
        }
        visit(row, b, next);
        next += dense.keys_of(b).size();
        ++kept;
      }
    }
  }
}

}  // namespace

void ScatterProbabilities(const DenseProbabilities& dense, ResponseTensor& target) {
  const int64_t padded = dense.keys.padded_length;
  std::vector<float> all(padded);
  ForEachQuery(dense, [&](int64_t row, int64_t b, const float* probabilities) {
    if (probabilities == nullptr) return target.WriteZeros(row * padded, padded);
    std::fill(all.begin(), all.end(), 0.0f);
    for (const int32_t position : dense.keys_of(b)) all[position] = *probabilities++;
    target.Write(row * padded, all.data(), padded);
  });
}

DenseProbabilities AverageHeads(const DenseProbabilities& dense) {
  const float* from = dense.data;
  float* to = dense.data;  // never ahead of unread input
  for (int64_t b = 0; b < dense.layout.sequences; ++b) {
    const int64_t pairs = dense.layout.length(b) * dense.keys.length(dense.key_sequence(b));
    for (int64_t i = 0; i < pairs; ++i) {
      float sum = 0;
      for (int64_t h = 0; h < dense.heads; ++h) sum += from[h * pairs + i];
      *to++ = sum / static_cast<float>(dense.heads);
    }
    from += dense.heads * pairs;
  }
  DenseProbabilities average = dense;
  average.heads = 1;
  return average;
}

void ScatterTopKeys(const DenseProbabilities& dense, ResponseTensor& probabilities,
                    ResponseTensor& keys) {
  const int64_t k = keys.dim(3);
  std::vector<int32_t> order, top(k);
  std::vector<float> values(k);
  ForEachQuery(dense, [&](int64_t row, int64_t b, const float* own) {
    std::fill(top.begin(), top.end(), -1);
    std::fill(values.begin(), values.end(), 0.0f);
    const absl::Span<const int32_t> positions = dense.keys_of(b);
    order.resize(own == nullptr ? 0 : positions.size());
    std::iota(order.begin(), order.end(), 0);
    const auto size = [&](int32_t key) { return std::isnan(own[key]) ? -1.0f : own[key]; };
    const int64_t count = std::min(k, static_cast<int64_t>(order.size()));
    std::partial_sort(order.begin(), order.begin() + count, order.end(),
                      [&](int32_t one, int32_t other) {
                        return size(one) != size(other) ? size(one) > size(other) : one < other;
                      });
    for (int64_t i = 0; i < count; ++i) {
      top[i] = positions[order[i]];
      values[i] = own[order[i]];
    }
    probabilities.Write(row * k, values.data(), k);
    keys.Write(row * k, top.data(), k);
  });
}

void ScatterWeightedValues(const DenseProbabilities& dense, MatrixView<const float> values,
                           ResponseTensor& target) {
  const TokenLayout& layout = dense.layout;
  const int64_t padded = layout.padded_length, width = target.dim(4);
  const int64_t of_values = values.cols / width;  // heads
  const int64_t of_sequence = target.elements() / target.dim(0);
  target.WriteZeros(dense.first_sequence * of_sequence, layout.sequences * of_sequence);
  std::vector<float> weighted(width);
  ForEachQuery(dense, [&](int64_t row, int64_t b, const float* probabilities) {
    if (probabilities == nullptr) return;
    const int64_t matrix = row / padded, query = row % padded, head = matrix % dense.heads;
    const int64_t first_column = head * of_values / dense.heads * width;
    const absl::Span<const int32_t> positions = layout.positions_of(b);
    for (size_t key = 0; key < positions.size(); ++key) {
      const float* value = values.row(layout.cu_seqlens[b] + static_cast<int64_t>(key));
      for (int64_t i = 0; i < width; ++i) {
        weighted[i] = probabilities[key] * value[first_column + i];
      }
      const int64_t pair = (matrix * padded + positions[key]) * padded + query;
      target.Write(pair * width, weighted.data(), width);
    }
  });
}

}  // namespace attendant::server
