#include "client/commands/text/scores.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "attendant/v1/encoder_service.pb.h"

namespace attendant::client {
namespace {

double Sigmoid(double output) {
  // Of the magnitude, so that nothing overflows.
  const double small = std::exp(-std::abs(output));
  return (output >= 0 ? 1 : small) / (1 + small);
}

void Apply(v1::ScoreFunction function, std::vector<double>& row) {
  if (function == v1::SCORES_PLAIN || row.empty()) return;
  if (function == v1::SCORES_SIGMOID || (function == v1::SCORES_UNKNOWN && row.size() == 1)) {
    std::transform(row.begin(), row.end(), row.begin(), Sigmoid);
    return;
  }
  const double largest = *std::max_element(row.begin(), row.end());
  for (double& score : row) score = std::exp(score - largest);
  const double sum = std::accumulate(row.begin(), row.end(), 0.0);
  for (double& score : row) score /= sum;
}

}  // namespace

std::vector<std::vector<double>> Scores(v1::ScoreFunction function, const Tensor& outputs) {
  const std::vector<float> values = ToFloats(outputs).value_or(std::vector<float>());
  const auto rows = static_cast<size_t>(outputs.shape[0]);
  const auto classes = static_cast<size_t>(outputs.shape[1]);
  std::vector<std::vector<double>> scores;
  for (size_t i = 0; i < rows; ++i) {
    const auto begin = values.begin() + i * classes;
    Apply(function, scores.emplace_back(begin, begin + classes));
  }
  return scores;
}

std::vector<size_t> BestFirst(const std::vector<double>& scores) {
  std::vector<size_t> places(scores.size());
  std::iota(places.begin(), places.end(), size_t{0});
  std::stable_sort(places.begin(), places.end(),
                   [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  return places;
}

}  // namespace attendant::client
