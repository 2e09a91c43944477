#include "client/load_test/objective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attendant::client {
namespace objective_test {

using testing::ElementsAre;
using testing::HasSubstr;

// 98 answers after 10 ms, 2 errors after 100 ms, in 2 s; half of the answers in time.
StepResult SomeResult() {
  StepResult result;
  for (int i = 0; i < 98; ++i) result.measured.latency.Record(absl::Milliseconds(10));
  for (int i = 0; i < 2; ++i) result.measured.latency.Record(absl::Milliseconds(100));
  result.measured.ok = 98;
  result.measured.in_time = 49;
  result.measured.errors[absl::StatusCode::kUnavailable] = 2;
  result.elapsed = absl::Seconds(2);
  return result;
}

TEST(ObjectiveTest, EachMetricHoldsOnOneSideOfItsValue) {
  const std::pair<const char*, const char*> cases[] = {
      {"p50<11ms", "p50<9ms"},          {"p98<11ms", "p99<100ms"},
      {"p99.9<0.101s", "p99.9<99ms"},   {"mean<12ms", "mean<11.7ms"},
      {"max<100.1ms", "max<100ms"},     {"throughput>48.9", "throughput>49"},
      {"goodput>24", "goodput > 24.6"}, {"errors<2.1%", "errors<2%"},
  };
  for (const auto& [held, missed] : cases) {
    EXPECT_TRUE(Objective::Parse(held)->HoldsIn(SomeResult())) << held;
    EXPECT_FALSE(Objective::Parse(missed)->HoldsIn(SomeResult())) << missed;
  }
}

TEST(ObjectiveTest, NothingMeasuredKeepsNone) {
  const Objective objective = *Objective::Parse("p99<1h");
  EXPECT_FALSE(objective.HoldsIn(StepResult()));
  EXPECT_EQ(objective.Compare(StepResult()),
            "p99<1h: expected below 3.6e+06 ms, nothing was measured");
}

TEST(ObjectiveTest, ComparesInTheUnitOfTheMetric) {
  const StepResult result = SomeResult();
  EXPECT_EQ(Objective::Parse("max < 50ms")->Compare(result),
            "max<50ms: expected below 50 ms, measured 100 ms");
  EXPECT_EQ(Objective::Parse("goodput>30")->Compare(result),
            "goodput>30: expected above 30 requests/s, measured 24.5 requests/s");
  EXPECT_EQ(Objective::Parse("errors<0.1%")->Compare(result),
            "errors<0.1%: expected below 0.1 %, measured 2 %");
}

TEST(ObjectiveTest, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "expected an objective such as p99<50ms"},
      {"p99", "expected an objective such as"},
      {"p99=50ms", "expected an objective such as"},
      {"latency<50ms", "expected an objective such as"},
      {"p<50ms", "expected an objective such as"},
      {"p0<50ms", "a percentile above 0 and below 100"},
      {"p100<50ms", "a percentile above 0 and below 100"},
      {"pnan<50ms", "a percentile above 0 and below 100"},
      {"p99>50ms", "expected '<' after p99"},
      {"throughput<5", "expected '>' after throughput"},
      {"p99<50", "a duration above 0 with its unit"},
      {"max<-1s", "a duration above 0"},
      {"max<inf", "a duration above 0"},
      {"goodput>many", "requests per second, a number above 0"},
      {"goodput>0", "a number above 0"},
      {"errors<0.1", "a share above 0%"},
      {"errors<0%", "a share above 0%"},
      {"errors<101%", "up to 100%, such as 0.1%; got \"errors<101%\""},
  };
  for (const auto& [text, message] : cases) {
    const absl::StatusOr<Objective> objective = Objective::Parse(text);
    EXPECT_EQ(objective.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(objective.status().message()), HasSubstr(message)) << text;
  }
}

TEST(ObjectiveTest, SeveralAreParsedTogetherAndMissedOnesNamed) {
  EXPECT_EQ(ParseObjectives({"p99<1s", "p99"}).status().code(), absl::StatusCode::kInvalidArgument);
  const auto objectives = ParseObjectives({"p50<9ms", "p50<1s", "errors<1%"});
  ASSERT_TRUE(objectives.ok());
  EXPECT_THAT(MissedIn(SomeResult(), *objectives),
              ElementsAre(HasSubstr("p50<9ms:"), HasSubstr("errors<1%:")));
}

}  // namespace objective_test
}  // namespace attendant::client
