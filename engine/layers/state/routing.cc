#include "engine/layers/state/routing.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/kernels/row_tiles.h"

namespace attendant {
namespace {

// Computes the softmax of the scores in place.
void Softmax(absl::Span<float> scores) {
  const float largest = *std::max_element(scores.begin(), scores.end());
  float sum = 0;
  for (float& score : scores) sum += score = std::exp(score - largest);
  for (float& score : scores) score /= sum;
}

constexpr float kTaken = -1;  // replaces the probability of a chosen expert

// Returns the expert with the largest probability that is not taken. If these are NaN, returns the
// first.
int32_t LargestOf(absl::Span<const float> probabilities) {
  int32_t largest = -1;
  for (size_t i = 0; i < probabilities.size(); ++i) {
    if (probabilities[i] == kTaken) continue;
    if (largest < 0 || probabilities[i] > probabilities[largest]) largest = static_cast<int32_t>(i);
  }
  return largest;
}

}  // namespace

Routing::Routing(const MixtureShape& shape, int64_t rows)
    : shape_(shape),
      scores_(rows * shape.experts),
      choices_(rows * shape.per_token),
      begins_(shape.experts),
      counts_(shape.experts) {}

CheckedSize Routing::Bytes(const MixtureShape& shape, CheckedSize rows) {
  return rows * (CheckedSize(shape.experts) * CheckedSize(sizeof(float)) +
                 CheckedSize(shape.per_token) * CheckedSize(sizeof(ExpertChoice))) +
         CheckedSize(shape.experts) * CheckedSize(2 * sizeof(int64_t));
}

CheckedSize Routing::MostPlaces(const MixtureShape& shape, CheckedSize rows) {
  return rows * shape.per_token + CheckedSize(kRowTile - 1);
}

MatrixView<float> Routing::scores(int64_t rows) {
  return {scores_.data(), rows, shape_.experts, shape_.experts};
}

void Routing::Choose(int64_t row) {
  const absl::Span<float> left(scores_.data() + row * shape_.experts, shape_.experts);
  const absl::Span<ExpertChoice> chosen(choices_.data() + row * shape_.per_token, shape_.per_token);
  Softmax(left);
  for (ExpertChoice& choice : chosen) {
    choice = {.expert = LargestOf(left), .place = 0, .weight = 0};
    choice.weight = std::exchange(left[choice.expert], kTaken);
  }
  std::sort(chosen.begin(), chosen.end(),
            [](const ExpertChoice& a, const ExpertChoice& b) { return a.expert < b.expert; });
}

void Routing::AssignPlaces(int64_t rows) {
  const absl::Span<ExpertChoice> all(choices_.data(), rows * shape_.per_token);
  std::fill_n(counts_.data(), shape_.experts, 0);
  for (ExpertChoice& choice : all) {
    choice.place = static_cast<int32_t>(counts_[choice.expert]++);
  }
  int64_t begin = 0;
  for (int64_t expert = 0; expert < shape_.experts; ++expert) {
    begins_[expert] = begin;
    begin += counts_[expert];
  }
  for (ExpertChoice& choice : all) {
    choice.place += static_cast<int32_t>(begins_[choice.expert]);
  }
}

absl::Span<const ExpertChoice> Routing::choices(int64_t row) const {
  return {choices_.data() + row * shape_.per_token, static_cast<size_t>(shape_.per_token)};
}

}  // namespace attendant
