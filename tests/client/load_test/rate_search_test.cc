#include "client/load_test/rate_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "attendant/v1/encoder_service.pb.h"
#include "client/load_test/load_generator.h"
#include "tests/client/load_test/simulated_server.h"

namespace attendant::client {
namespace rate_search_test {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kService = 0.010;  // seconds
constexpr double kCapacity = 1 / kService;

RateSearchOptions Options(const std::vector<std::string>& objectives) {
  return {.objectives = ParseObjectives(objectives).value()};
}

// Returns the mean time of a request at a server that takes kService for each and gets them at
// random times (M/D/1).
double MeanSeconds(double rate) {
  const double load = rate * kService;
  return load < 1 ? kService + load * kService / (2 * (1 - load)) : 1000;
}

// Returns the rate at which the mean is `seconds`: MeanSeconds turned around.
double RateOfMean(double seconds) {
  const double waiting = 2 * (seconds - kService) / kService;
  return waiting / (1 + waiting) / kService;
}

StepResult Answered(double rate, double seconds) {
  StepResult result;
  result.load.rate = rate;
  result.measured.ok = 1000;
  for (int i = 0; i < 1000; ++i) {
    result.measured.latency.Record(absl::Seconds(seconds));
    result.measured.send_lag.Record(absl::ZeroDuration());
  }
  result.elapsed = absl::Seconds(1000 / rate);
  return result;
}

StepResult Formula(double rate) { return Answered(rate, MeanSeconds(rate)); }

TEST(RateSearchTest, FindsTheRateOfTheFormula) {
  for (const double bound : {0.0105, 0.015, 0.030, 0.2}) {
    RateSearchOptions options = Options({absl::StrCat("mean<", bound, "s")});
    options.width = 0.01;
    const RateSearch search = SearchRate(options, kCapacity, Formula);
    const double expected = RateOfMean(bound);
    EXPECT_TRUE(search.converged);
    EXPECT_LE(search.found, expected * 1.0001);
    EXPECT_GE(*search.failed, expected * 0.9999);
    EXPECT_LE(*search.failed, search.found * 1.01);
    EXPECT_LE(search.steps.size(), 15u);
  }
}

TEST(RateSearchTest, BeginsAtHalfTheCapacityAndBisects) {
  const RateSearch search = SearchRate(Options({"mean<15ms"}), kCapacity, Formula);
  std::vector<double> rates;
  for (const StepResult& step : search.steps) rates.push_back(*step.load.rate);
  ASSERT_GE(rates.size(), 3u);
  EXPECT_EQ(rates[0], 50);
  EXPECT_THAT(search.steps[0].missed, ElementsAre(HasSubstr("mean<15ms: expected below 15 ms")));
  EXPECT_EQ(rates[1], 25);
  EXPECT_NEAR(rates[2], std::sqrt(25.0 * 50.0), 1e-9);
}

TEST(RateSearchTest, GoesUpWhereTheProbeFoundTooLittle) {
  const RateSearch search = SearchRate(Options({"mean<20ms"}), 2, Formula);
  EXPECT_NEAR(search.found, RateOfMean(0.020), 0.05 * RateOfMean(0.020));
  EXPECT_TRUE(search.converged);
}

TEST(RateSearchTest, EndsWhereNoRateFails) {
  RateSearchOptions options = Options({"mean<1h"});
  options.most_rate = 1000;
  const RateSearch search = SearchRate(options, 100, Formula);
  EXPECT_EQ(search.found, 1000);
  EXPECT_FALSE(search.failed);
  EXPECT_FALSE(search.converged);
}

TEST(RateSearchTest, EndsWhereNoRateHolds) {
  RateSearchOptions options = Options({"mean<1ms"});
  options.least_rate = 10;
  const RateSearch search = SearchRate(options, kCapacity, Formula);
  EXPECT_EQ(search.found, 0);
  EXPECT_THAT(*search.failed, testing::AllOf(testing::Ge(10), testing::Lt(20)));
}

TEST(RateSearchTest, EndsWhereTheServerIsIdle) {
  const RateSearch search = SearchRate(Options({"mean<1ms"}), kCapacity, Formula);
  EXPECT_EQ(search.found, 0);
  EXPECT_THAT(*search.failed,
              testing::AllOf(testing::Ge(0.01 * kCapacity), testing::Lt(0.02 * kCapacity)));
}

TEST(RateSearchTest, StopsAfterTheMostSteps) {
  RateSearchOptions options = Options({"mean<15ms"});
  options.width = 1e-9;
  options.most_steps = 7;
  const RateSearch search = SearchRate(options, kCapacity, Formula);
  EXPECT_EQ(search.steps.size(), 7u);
  EXPECT_FALSE(search.converged);
}

TEST(RateSearchTest, AnInterruptKeepsWhatHasBeenFound) {
  int calls = 0;
  const RateSearch search =
      SearchRate(Options({"mean<1s"}), kCapacity, [&](double rate) -> std::optional<StepResult> {
        if (++calls == 3) return std::nullopt;
        return Formula(rate);
      });
  EXPECT_EQ(search.steps.size(), 2u);
  EXPECT_EQ(search.found, 75);
}

TEST(RateSearchTest, ErrorsFailAStepToo) {
  const RateSearch errors = SearchRate(Options({"mean<1h"}), 100, [](double rate) {
    StepResult result = Answered(rate, 0.001);
    if (rate > 60) result.measured.errors[absl::StatusCode::kResourceExhausted] = 2;
    return result;
  });
  EXPECT_LE(errors.found, 60);
  EXPECT_GE(*errors.failed, 60);
  EXPECT_THAT(errors.steps[1].missed,
              ElementsAre("errors: expected at most 0.1 %, measured 0.2 %"));
}

TEST(RateSearchTest, SendingFailsAStepWhenItIsLateForTheObjective) {
  const auto late_above_60 = [](double rate) {
    StepResult result = Answered(rate, 0.001);
    for (int i = 0; i < 20 && rate > 60; ++i) {
      result.measured.send_lag.Record(absl::Milliseconds(8));
    }
    return result;
  };
  const RateSearch late = SearchRate(Options({"mean<1h", "mean<50ms"}), 100, late_above_60);
  EXPECT_LE(late.found, 60);
  EXPECT_THAT(late.steps[1].missed, ElementsAre(HasSubstr("sent late: expected at most 1 %")));
  RateSearchOptions slow = Options({"mean<1s"});
  slow.most_rate = 200;
  EXPECT_EQ(SearchRate(slow, 100, late_above_60).found, 200);
}

TEST(RateSearchTest, ASilentServerHoldsNothing) {
  RateSearchOptions options = Options({"mean<1h"});
  options.least_rate = 10;
  const RateSearch search =
      SearchRate(options, 100, [](double rate) { return StepResult{.load = {.rate = rate}}; });
  EXPECT_EQ(search.found, 0);
  EXPECT_THAT(search.steps[0].missed, testing::Contains("no request succeeded"));
}

// The generator and its clock take part: requests that arrive at random at a simulated server of
// one queue, whose mean time the formula tells.
TEST(RateSearchTest, TheGeneratorAgreesWithTheFormula) {
  ModelInfo model;
  model.mutable_layer()->set_hidden_size(1);
  const Workload workload =
      Workload::Make({.model = ""}, LengthDistribution::Parse("1").value(), model).value();
  RateSearchOptions options = Options({"mean<20ms"});
  options.width = 0.02;
  const RateSearch search = SearchRate(options, kCapacity, [&](double rate) {
    SimulatedServer server(absl::Seconds(kService));
    Recorder recorder;
    LoadGenerator generator({.schedule = ArrivalSchedule(Arrival::kPoisson, rate, 7),
                             .warmup = absl::Seconds(20),
                             .duration = absl::Seconds(2000)},
                            {.workload = workload,
                             .send = [&](int64_t, const WorkItem&,
                                         LoadContext::Done done) { server.Send(std::move(done)); },
                             .clock = server,
                             .recorder = recorder,
                             .tick = [] { return true; }});
    generator.Run();
    StepResult result;
    result.load.rate = rate;
    result.measured = recorder.Total();
    result.elapsed = result.measured.last_answer - generator.measured_from();
    return result;
  });
  EXPECT_TRUE(search.converged);
  EXPECT_NEAR(search.found, RateOfMean(0.020), 0.04 * RateOfMean(0.020));
}

}  // namespace rate_search_test
}  // namespace attendant::client
