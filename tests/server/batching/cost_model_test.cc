#include "server/batching/cost_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace attendant::server {
namespace cost_model_test {

// E 4, H 2, D 2, F 8, three layers.
ModelDescription Small() {
  ModelDescription model;
  model.layers = 3;
  model.layer.hidden_size = 4;
  model.layer.attention.heads = 2;
  model.layer.attention.key_width = 2;
  model.layer.attention.value_width = 2;
  model.layer.feed_forward.width = 8;
  return model;
}

// Operations of a token in the linear layers of one layer: Q, K and V; output; both of the feed
// forward block. Operations of a pair: score and sum.
constexpr double kInputs = 2 * 3 * 4 * 4, kOutput = 2 * 4 * 4, kForward = 2 * 2 * 4 * 8;
constexpr double kPair = 2 * 2 * 2 * 2;

constexpr CostRates kRates = {.seconds_per_layer = 7, .product_flops = 2, .attention_flops = 0.5};

TEST(CostModelTest, PredictsByTheOperationsOfTheSpan) {
  CostModel model(Small());
  EXPECT_FALSE(model.has_rates());
  model.SetRates(kRates);
  EXPECT_TRUE(model.has_rates());
  EXPECT_EQ(model.rates(), kRates);
  const SpanCost whole = model.Predict({.first_layer = 1, .layers = 2});
  EXPECT_DOUBLE_EQ(whole.per_batch, 14);
  EXPECT_DOUBLE_EQ(whole.per_token, 2 * (kInputs + kOutput + kForward) / 2);
  EXPECT_DOUBLE_EQ(whole.per_pair, 2 * kPair / 0.5);
  EXPECT_DOUBLE_EQ(whole.per_sequence, 0);
  EXPECT_DOUBLE_EQ(whole.OfSequence(3, 5), 3 * whole.per_token + 15 * whole.per_pair);
}

TEST(CostModelTest, CountsOnlyThePartThatIsComputed) {
  CostModel model(Small());
  model.SetRates(kRates);
  EXPECT_DOUBLE_EQ(model.Predict({0, 1, CostedPart::kInputs}).per_token, kInputs / 2);
  EXPECT_DOUBLE_EQ(model.Predict({0, 1, CostedPart::kInputs}).per_pair, 0);
  EXPECT_DOUBLE_EQ(model.Predict({0, 1, CostedPart::kContext}).per_token, kInputs / 2);
  EXPECT_DOUBLE_EQ(model.Predict({0, 1, CostedPart::kContext}).per_pair, kPair / 0.5);
  EXPECT_DOUBLE_EQ(model.Predict({0, 1, CostedPart::kProjected}).per_token,
                   (kInputs + kOutput) / 2);
}

TEST(CostModelTest, CountsTheOperationsOfATrial) {
  const CostTrial trial = CostModel(Small()).OperationsOfLayer(3, 5);
  EXPECT_DOUBLE_EQ(trial.products, 15 * (kInputs + kOutput + kForward));
  EXPECT_DOUBLE_EQ(trial.attention, 3 * 25 * kPair);
}

CostTrial Timed(double products, double attention, const CostRates& rates) {
  return {
      products, attention,
      rates.seconds_per_layer + products / rates.product_flops + attention / rates.attention_flops};
}

TEST(FitRatesTest, FindsTheRatesThatMadeTheTimes) {
  const CostRates truth = {
      .seconds_per_layer = 3e-4, .product_flops = 4e11, .attention_flops = 9e10};
  const CostRates found =
      FitRates(Timed(1e8, 1e5, truth), Timed(3e9, 3e6, truth), Timed(3e9, 4e8, truth));
  EXPECT_NEAR(found.seconds_per_layer / truth.seconds_per_layer, 1, 1e-6);
  EXPECT_NEAR(found.product_flops / truth.product_flops, 1, 1e-6);
  EXPECT_NEAR(found.attention_flops / truth.attention_flops, 1, 1e-6);
}

void ExpectSound(const CostRates& rates) {
  EXPECT_GE(rates.seconds_per_layer, 0);
  EXPECT_GT(rates.product_flops, 0);
  EXPECT_GT(rates.attention_flops, 0);
  EXPECT_TRUE(std::isfinite(rates.seconds_per_layer));
  EXPECT_TRUE(std::isfinite(rates.product_flops));
  EXPECT_TRUE(std::isfinite(rates.attention_flops));
}

TEST(FitRatesTest, NoiseMakesNoNegativeRates) {
  for (const double few : {1e-5, 1e-3, 1.0}) {
    for (const double many : {1e-5, 1e-3, 1.0}) {
      for (const double longs : {0.0, 1e-5, 1e-3, 1.0}) {
        ExpectSound(FitRates({1e8, 1e5, few}, {3e9, 3e6, many}, {3e9, 4e8, longs}));
        ExpectSound(FitRates({0, 1e5, few}, {0, 3e6, many}, {0, 4e8, longs}));
        ExpectSound(FitRates({1e8, 0, few}, {3e9, 0, many}, {3e9, 0, longs}));
        ExpectSound(FitRates({0, 0, few}, {0, 0, many}, {0, 0, longs}));
      }
    }
  }
}

TEST(FitRatesTest, WithoutAttentionEverythingIsTheProducts) {
  const CostRates found = FitRates({1e8, 0, 2e-3}, {3e9, 0, 31e-3}, {3e9, 0, 31e-3});
  EXPECT_NEAR(found.product_flops, 1e11, 1);
  EXPECT_NEAR(found.seconds_per_layer, 1e-3, 1e-9);
}

const absl::Time kStart = absl::UnixEpoch();

TEST(CorrectionTest, IsOneUntilSomethingIsMeasured) {
  CostModel model(Small());
  EXPECT_EQ(model.correction(kStart), 1);
  for (const double bad : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    model.Observe(bad, 1, kStart);
    model.Observe(1, bad, kStart);
  }
  EXPECT_EQ(model.correction(kStart), 1);
}

TEST(CorrectionTest, ApproachesASteadyRatioAndHardlyMovesForOneBatch) {
  CostModel model(Small());
  model.Observe(1, 100, kStart);
  EXPECT_LT(model.correction(kStart), 1.15);
  for (int i = 0; i < 200; ++i) model.Observe(0.02, 0.05, kStart);
  EXPECT_NEAR(model.correction(kStart), 2.5, 0.01);
  for (int i = 0; i < 200; ++i) model.Observe(0.02, 0.01, kStart);
  EXPECT_NEAR(model.correction(kStart), 0.5, 0.01);
}

TEST(CorrectionTest, StaysWithinItsBounds) {
  CostModel slow(Small()), fast(Small());
  for (int i = 0; i < 1000; ++i) {
    slow.Observe(1e-9, 1e9, kStart);
    fast.Observe(1e9, 1e-9, kStart);
  }
  EXPECT_NEAR(slow.correction(kStart), 8, 1e-6);
  EXPECT_NEAR(fast.correction(kStart), 1.0 / 8, 1e-6);
}

TEST(CorrectionTest, FadesWhileNothingIsMeasured) {
  CostModel model(Small());
  for (int i = 0; i < 1000; ++i) model.Observe(1, 4, kStart);
  EXPECT_NEAR(model.correction(kStart + absl::Seconds(30)), 2, 0.01);
  EXPECT_NEAR(model.correction(kStart + absl::Minutes(10)), 1, 0.01);
  EXPECT_NEAR(model.correction(kStart - absl::Seconds(1)), 4, 0.01);
}

}  // namespace cost_model_test
}  // namespace attendant::server
