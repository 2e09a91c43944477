#include "server/batching/cost_model.h"

#include <algorithm>
#include <cmath>

namespace attendant::server {
namespace {

constexpr double kMostCorrection = 8;
constexpr double kStep = 1.0 / 16;  // the weight of one measurement
constexpr absl::Duration kHalfLife = absl::Seconds(30);

std::vector<LayerCost> CostsOf(const ModelDescription& description) {
  std::vector<LayerCost> layers;
  for (int64_t i = 0; i < description.layers; ++i) layers.push_back(CostOfLayer(description, i));
  return layers;
}

// Sums up the products of the parts up to `last`.
StageCost Products(const LayerCost& layer, CostedPart last) {
  StageCost sum;
  const auto add = [&](const StageCost& cost) {
    sum.per_token += cost.per_token;
    sum.per_sequence += cost.per_sequence;
  };
  add(layer.inputs);
  if (last >= CostedPart::kProjected) add(layer.output);
  if (last == CostedPart::kWhole) add(layer.others);
  return sum;
}

double OperationsOf(const StageCost& cost, double sequences, double length) {
  return sequences *
         (static_cast<double>(cost.per_sequence) + length * static_cast<double>(cost.per_token) +
          length * length * static_cast<double>(cost.per_pair));
}

// The seconds of one operation, where `more` operations took `longer`. Noise can make that far too
// small or too large, so it is kept within a factor of `average`.
double SecondsEach(double more, double longer, double average) {
  constexpr double kMostRatio = 16;
  if (more <= 0) return average;
  return std::clamp(longer / more, average / kMostRatio, average * kMostRatio);
}

}  // namespace

CostRates FitRates(const CostTrial& few, const CostTrial& many, const CostTrial& longs) {
  CostRates rates;
  const double operations = longs.products + longs.attention;
  if (operations <= 0 || longs.seconds <= 0) return rates;
  const double average = longs.seconds / operations;
  const double attention =
      SecondsEach(longs.attention - many.attention, longs.seconds - many.seconds, average);
  const double without_attention =
      many.seconds - few.seconds - attention * (many.attention - few.attention);
  const double products =
      std::min(SecondsEach(many.products - few.products, without_attention, average),
               many.products > 0 ? many.seconds / many.products : average);
  rates.product_flops = 1 / products;
  rates.attention_flops = 1 / attention;
  rates.seconds_per_layer =
      std::max(0.0, few.seconds - products * few.products - attention * few.attention);
  return rates;
}

CostModel::CostModel(const ModelDescription& description) : layers_(CostsOf(description)) {}

void CostModel::SetRates(const CostRates& rates) {
  absl::MutexLock lock(&mutex_);
  rates_ = rates;
  has_rates_ = true;
}

bool CostModel::has_rates() const {
  absl::MutexLock lock(&mutex_);
  return has_rates_;
}

CostRates CostModel::rates() const {
  absl::MutexLock lock(&mutex_);
  return rates_;
}

CostTrial CostModel::OperationsOfLayer(int64_t sequences, int64_t length) const {
  CostTrial sum;
  const auto count = static_cast<double>(sequences), tokens = static_cast<double>(length);
  for (const LayerCost& layer : layers_) {
    sum.products += OperationsOf(Products(layer, CostedPart::kWhole), count, tokens);
    sum.attention += OperationsOf(layer.attention, count, tokens);
  }
  sum.products /= static_cast<double>(layers_.size());
  sum.attention /= static_cast<double>(layers_.size());
  return sum;
}

SpanCost CostModel::Predict(const LayerRange& range) const {
  const CostRates rates = this->rates();
  SpanCost span;
  span.per_batch = rates.seconds_per_layer * static_cast<double>(range.layers);
  for (int64_t i = range.first_layer; i < range.first_layer + range.layers; ++i) {
    const StageCost products = Products(layers_[i], range.part);
    span.per_token += static_cast<double>(products.per_token) / rates.product_flops;
    span.per_sequence += static_cast<double>(products.per_sequence) / rates.product_flops;
    if (range.part == CostedPart::kInputs) continue;
    const StageCost& attention = layers_[i].attention;
    span.per_token += static_cast<double>(attention.per_token) / rates.attention_flops;
    span.per_pair += static_cast<double>(attention.per_pair) / rates.attention_flops;
    span.per_sequence += static_cast<double>(attention.per_sequence) / rates.attention_flops;
  }
  return span;
}

double CostModel::LogOfCorrection(absl::Time now) const {
  if (observed_ == absl::InfinitePast()) return 0;
  const double half_lives = absl::FDivDuration(now - observed_, kHalfLife);
  return log_ * std::exp2(-std::max(0.0, half_lives));
}

double CostModel::correction(absl::Time now) const {
  absl::MutexLock lock(&mutex_);
  return std::exp(LogOfCorrection(now));
}

void CostModel::Observe(double predicted, double measured, absl::Time now) {
  if (!(predicted > 0) || !(measured > 0)) return;
  const double ratio = std::clamp(measured / predicted, 1 / kMostCorrection, kMostCorrection);
  absl::MutexLock lock(&mutex_);
  const double log = LogOfCorrection(now);
  log_ = log + kStep * (std::log(ratio) - log);
  observed_ = now;
}

}  // namespace attendant::server
