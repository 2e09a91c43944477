#include "engine/layers/pooling.h"

#include <algorithm>
#include <cmath>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "engine/kernels/columns.h"

namespace attendant {
namespace {

// The rows of one sequence and their positions; see Pool.
struct Tokens {
  MatrixView<const float> hidden_states;
  absl::Span<const int32_t> positions;
  int64_t prefix_tokens = 0;

  int64_t position(int64_t row) const { return positions.empty() ? row : positions[row]; }
};

void PositionWeightedMean(const Tokens& tokens, float* target) {
  constexpr size_t kRowsOnStack = 2048;  // longer sequences allocate memory
  const MatrixView<const float> x = tokens.hidden_states;
  absl::InlinedVector<double, kRowsOnStack> weights(x.rows);
  for (int64_t r = 0; r < x.rows; ++r) weights[r] = static_cast<double>(tokens.position(r)) + 1.0;
  WeightedColumnSums(x, weights, absl::c_accumulate(weights, 0.0), target);
}

// Computes the mean of the features, which follow the prefix tokens.
void FeatureMean(const Tokens& tokens, float* target) {
  const MatrixView<const float> x = tokens.hidden_states;
  int64_t first = 0;
  while (first < x.rows && tokens.position(first) - tokens.position(0) < tokens.prefix_tokens) {
    ++first;
  }
  const int64_t rows = x.rows - first;
  ColumnSums(x.Rows(first, rows), static_cast<double>(std::max<int64_t>(rows, 1)), target);
}

void PoolOne(PoolingMode mode, const Tokens& tokens, float* target) {
  const MatrixView<const float> x = tokens.hidden_states;
  const double length = static_cast<double>(x.rows);
  switch (mode) {
    case PoolingMode::kFirstToken:
      std::copy_n(x.row(0), x.cols, target);
      return;
    case PoolingMode::kMax:
      std::copy_n(x.row(0), x.cols, target);
      return RaiseToColumnMax(x, target);
    case PoolingMode::kMean:
    case PoolingMode::kLateMean:  // of rows that the head has made
      return ColumnSums(x, length, target);
    case PoolingMode::kMeanSqrtLen:
      return ColumnSums(x, std::sqrt(length), target);
    case PoolingMode::kPositionWeightedMean:
      return PositionWeightedMean(tokens, target);
    case PoolingMode::kLastToken:
      std::copy_n(x.row(x.rows - 1), x.cols, target);
      return;
    case PoolingMode::kFeatureMean:
      return FeatureMean(tokens, target);
    case PoolingMode::kAttention:  // has weights: see AttentionPooling
      return;
  }
}

}  // namespace

void Pool(absl::Span<const PoolingMode> modes, MatrixView<const float> hidden_states,
          absl::Span<const int32_t> positions, absl::Span<float> target, int64_t prefix_tokens) {
  if (hidden_states.rows == 0) {
    std::fill(target.begin(), target.end(), 0.0f);
    return;
  }
  float* part = target.data();
  for (PoolingMode mode : modes) {
    PoolOne(mode, {hidden_states, positions, prefix_tokens}, part);
    part += hidden_states.cols;
  }
}

int64_t TokensToEnd(const PoolingDescription& pooling, absl::Span<const int32_t> ids) {
  auto tokens = static_cast<int64_t>(ids.size());
  while (tokens > 1 && ids[tokens - 1] == pooling.padding_id) --tokens;
  if (pooling.end_id == PoolingDescription::kNoEnd) return tokens;
  const auto end = pooling.end_id == PoolingDescription::kLargestId
                       ? absl::c_max_element(ids)
                       : absl::c_find(ids, pooling.end_id);
  return std::min<int64_t>(tokens, end - ids.begin() + 1);
}

bool AppendPooledRows(absl::Span<const PoolingMode> modes, int64_t begin, int64_t length,
                      std::vector<int32_t>& rows) {
  const bool first = absl::c_linear_search(modes, PoolingMode::kFirstToken);
  const bool last = absl::c_linear_search(modes, PoolingMode::kLastToken);
  const bool others = absl::c_any_of(modes, [](PoolingMode mode) {
    return mode != PoolingMode::kFirstToken && mode != PoolingMode::kLastToken;
  });
  if (others) return false;
  if (length == 0) return true;
  if (first) rows.push_back(static_cast<int32_t>(begin));
  if (last && !(first && length == 1)) rows.push_back(static_cast<int32_t>(begin + length - 1));
  return true;
}

void NormalizeToUnitLength(absl::Span<float> vector) {
  double sum_of_squares = 0;
  for (float element : vector) sum_of_squares += static_cast<double>(element) * element;
  const double length = std::max(std::sqrt(sum_of_squares), 1e-12);
  for (float& element : vector) element = static_cast<float>(element / length);
}

}  // namespace attendant
