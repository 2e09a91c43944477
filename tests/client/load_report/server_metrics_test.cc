#include "client/load_report/server_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace attendant::client {
namespace server_metrics_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr char kText[] =
    "# HELP calls Calls.\n"
    "# TYPE calls counter\n"
    "calls{code=\"OK\"} 5\n"
    "calls{code=\"a } \\\" b\"} 2 1700000000\r\n"
    "\n"
    "# TYPE seconds histogram\n"
    "seconds_bucket{le=\"+Inf\"} 7\n"
    "seconds_sum 0.5\n"
    "# TYPE bytes gauge\n"
    "bytes 1e+06\n"
    "bytes_limit +Inf\n"
    "odd 3\n";

TEST(ParseMetricsTest, TellsCountersFromGauges) {
  const absl::StatusOr<MetricsSample> sample = ParseMetrics(kText);
  ASSERT_TRUE(sample.ok()) << sample.status();
  EXPECT_THAT(sample->counters,
              ElementsAre(Pair("calls{code=\"OK\"}", 5), Pair("calls{code=\"a } \\\" b\"}", 2),
                          Pair("seconds_bucket{le=\"+Inf\"}", 7), Pair("seconds_sum", 0.5)));
  EXPECT_THAT(sample->gauges, ElementsAre(Pair("bytes", 1e6), Pair("odd", 3)));
}

TEST(ParseMetricsTest, RefusesOtherTexts) {
  for (const char* text : {"<html>", "name", "name x", "name{a=\"b 5", "name{a=\"b\"}"}) {
    EXPECT_EQ(ParseMetrics(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(MetricsJsonTest, HasDifferencesOfCountersAndBothValuesOfGauges) {
  MetricsSample before = {.counters = {{"calls", 5}}, .gauges = {{"bytes", 10}}};
  MetricsSample after = {.counters = {{"calls", 9}, {"more", 1}}, .gauges = {{"bytes", 30}}};
  const nlohmann::ordered_json json = MetricsJson("http://x", before, after);
  EXPECT_EQ(json["url"], "http://x");
  EXPECT_EQ(json["counters"]["calls"], 4.0);
  EXPECT_EQ(json["counters"]["more"], 1.0);
  EXPECT_EQ(json["gauges"]["bytes"], nlohmann::ordered_json({10.0, 30.0}));
}

TEST(MetricsJsonTest, ACounterOfARestartedServerIsNotNegative) {
  const nlohmann::ordered_json json =
      MetricsJson("http://x", {{{"calls", 5}}, {}}, {{{"calls", 3}}, {}});
  EXPECT_EQ(json["counters"]["calls"], 3.0);
}

TEST(FetchMetricsTest, SaysWhyThereAreNone) {
  const absl::Status scheme = FetchMetrics({"file:///etc/passwd"}, absl::Seconds(5)).status();
  EXPECT_EQ(scheme.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(scheme.message()), HasSubstr("file:///etc/passwd: "));
  const absl::Status nobody = FetchMetrics({"http://127.0.0.1:1/"}, absl::Seconds(5)).status();
  EXPECT_EQ(nobody.code(), absl::StatusCode::kUnavailable);
}

}  // namespace server_metrics_test
}  // namespace attendant::client
