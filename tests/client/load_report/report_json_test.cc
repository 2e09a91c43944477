#include "client/load_report/report_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/client/load_report/some_report.h"

namespace attendant::client {
namespace report_json_test {

TEST(ReportJsonTest, HasEveryFigure) {
  const nlohmann::ordered_json document = ReportJson(SomeReport());
  EXPECT_EQ(document["plan"]["lengths"], "5..512");
  EXPECT_FALSE(document.contains("search"));
  EXPECT_EQ(document["interrupted"], false);
  ASSERT_EQ(document["steps"].size(), 1u);
  const nlohmann::ordered_json& json = document["steps"][0];
  EXPECT_EQ(json["load"], nlohmann::ordered_json({{"concurrency", 8}}));
  EXPECT_EQ(json["elapsed_s"], 2.0);
  EXPECT_EQ(json["ok"], 200);
  EXPECT_EQ(json["errors"]["RESOURCE_EXHAUSTED"], 4);
  EXPECT_EQ(json["warmup_requests"], 7);
  EXPECT_EQ(json["tokens"], 2000);
  EXPECT_EQ(json["tokens_per_s"], 1000.0);
  EXPECT_EQ(json["requests_per_s"], 100.0);
  EXPECT_EQ(json["goodput"]["deadline_s"], 0.15);
  EXPECT_EQ(json["goodput"]["in_time"], 150);
  EXPECT_EQ(json["goodput"]["requests_per_s"], 75.0);
  EXPECT_NEAR(json["goodput"]["share"].get<double>(), 0.735, 0.001);
  EXPECT_NEAR(json["latency_ms"]["p50"].get<double>(), 102, 1);
  EXPECT_NEAR(json["latency_ms"]["p99"].get<double>(), 300, 3);
  EXPECT_EQ(json["latency_ms"]["max"], 300.0);
  EXPECT_EQ(json["ok_mean_ms"], 100.5);
  EXPECT_EQ(json["send_lag_ms"]["max"], 0.0);
  EXPECT_EQ(json["late_share"], 0.0);
  EXPECT_EQ(json["server_ms"]["compute"], 3.0);
  EXPECT_EQ(json["batch"]["requests"], 2.0);
}

TEST(ReportJsonTest, NothingMeasuredIsAllZero) {
  LoadReport empty;
  empty.steps.emplace_back();
  const nlohmann::ordered_json json = (*ReportJson(empty))["steps"][0];
  EXPECT_EQ(json["tokens_per_s"], 0.0);
  EXPECT_EQ(json["goodput"]["share"], 0.0);
  EXPECT_TRUE(json["goodput"]["deadline_s"].is_null());
}

TEST(ReportJsonTest, SaysHowToRunItAgain) {
  const nlohmann::ordered_json run = (*ReportJson(SomeReport()))["run"];
  EXPECT_EQ(run["command_line"][1], "load-test");
  EXPECT_EQ(run["started"], "1970-01-01T00:00:00+00:00");
  EXPECT_EQ(run["seed"], 9);
  EXPECT_EQ(run["client_version"], "1.2");
  EXPECT_EQ(run["address"], "localhost:8001");
  EXPECT_EQ(run["server"], "attendant");
  EXPECT_EQ(run["server_version"], "1.3");
  EXPECT_EQ(run["model"]["compute_type"], "bf16");
}

TEST(ReportJsonTest, HasTheHistogramAndTheSeconds) {
  const nlohmann::ordered_json step = (*ReportJson(SomeReport()))["steps"][0];
  int64_t count = 0;
  for (const auto& bucket : step["histogram_ms"]) count += bucket[1].get<int64_t>();
  EXPECT_EQ(count, 204);
  EXPECT_EQ(step["histogram_ms"].back()[0], 300.0);
  EXPECT_EQ(step["histogram_ms"].back()[1], 4);
  ASSERT_EQ(step["seconds"].size(), 2u);
  EXPECT_EQ(step["seconds"][0]["length_s"], 1.0);
  EXPECT_EQ(step["seconds"][1]["length_s"], 1.0);
  EXPECT_EQ(step["seconds"][0]["sent"], 204);
  EXPECT_EQ(step["seconds"][0]["ok"], 200);
  EXPECT_EQ(step["seconds"][0]["p99_ms"], 198.0);
  EXPECT_EQ(step["seconds"][0]["compute_ms"], 3.0);
  EXPECT_EQ(step["seconds"][1]["errors"]["RESOURCE_EXHAUSTED"], 4);
}

TEST(ReportJsonTest, ASearchHasAllItsSteps) {
  const nlohmann::ordered_json json = ReportJson(SomeSearch());
  EXPECT_EQ(json["search"]["objectives"][1], "max<1s");
  EXPECT_EQ(json["search"]["rate"], 50.0);
  EXPECT_EQ(json["search"]["failed_rate"], 75.0);
  EXPECT_EQ(json["search"]["capacity_per_s"], 100.0);
  EXPECT_EQ(json["search"]["converged"], false);
  ASSERT_EQ(json["steps"].size(), 3u);
  EXPECT_EQ(json["steps"][1]["load"]["rate"], 50.0);
  EXPECT_EQ(json["steps"][1]["missed"].size(), 0u);
  EXPECT_EQ(json["steps"][2]["missed"][0], "p99<250ms: expected below 250 ms, measured 300 ms");
}

TEST(ReportJsonTest, TheLastSecondIsAsLongAsItWas) {
  LoadReport report = SomeReport();
  report.steps[0].elapsed = absl::Seconds(1.25);
  const nlohmann::ordered_json seconds = (*ReportJson(report))["steps"][0]["seconds"];
  EXPECT_EQ(seconds[0]["length_s"], 1.0);
  EXPECT_EQ(seconds[1]["length_s"], 0.25);
}

}  // namespace report_json_test
}  // namespace attendant::client
