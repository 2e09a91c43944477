#include "client/load_test/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace attendant::client {
namespace {

using testing::HasSubstr;
using testing::Not;

// Statistics of 200 answers of 10 tokens after 1..200 ms, with a deadline of 150 ms, and of 4
// errors after 300 ms, in 2 s.
LoadReport SomeReport() {
  Recorder recorder(absl::Milliseconds(150));
  Execution execution;
  execution.queue = absl::Milliseconds(1);
  execution.copy = absl::Milliseconds(0.5);
  execution.compute = absl::Milliseconds(3);
  execution.batch_tokens = 40;
  execution.batch_requests = 2;
  const absl::Time start = absl::UnixEpoch();
  for (int i = 1; i <= 200; ++i) {
    recorder.Record({start, start, start + absl::Milliseconds(i)}, 10, execution);
  }
  for (int i = 0; i < 4; ++i) {
    recorder.Record({start, start, start + absl::Milliseconds(300)}, 10,
                    absl::ResourceExhaustedError("full"));
  }
  return {.plan = {{"method", "encode"}, {"lengths", "5..512"}},
          .measured = recorder.Total(),
          .warmup_requests = 7,
          .deadline = absl::Milliseconds(150),
          .elapsed = absl::Seconds(2)};
}

TEST(ReportTableTest, HasEveryFigure) {
  const std::string table = ReportTable(SomeReport());
  EXPECT_THAT(table, HasSubstr("method             encode\nlengths            5..512\n"));
  EXPECT_THAT(table, HasSubstr("200 ok, 4 errors in 2.00 s; 7 more to warm up\n"));
  EXPECT_THAT(table, HasSubstr("RESOURCE_EXHAUSTED: 4\n"));
  EXPECT_THAT(table, HasSubstr("1000.0 kept tokens/s, 100.00 requests/s\n"));
  EXPECT_THAT(table, HasSubstr("queue 1.000  copy 0.500  compute 3.000\n"));
  EXPECT_THAT(table, HasSubstr("40.0 tokens, 2.00 requests\n"));
  EXPECT_THAT(table, HasSubstr("goodput            75.00 requests/s: 150 answered within 150ms, "
                               "73.5 % of all\n"));
  for (const char* name : {"mean", "p50", "p90", "p95", "p99", "p99.9", "max", "300.000"}) {
    EXPECT_THAT(table, HasSubstr(name));
  }
  EXPECT_THAT(table, Not(HasSubstr("warning")));
}

TEST(ReportTableTest, WarnsWhenTheGeneratorFellBehind) {
  LoadReport report = SomeReport();
  for (int i = 0; i < 5; ++i) report.measured.send_lag.Record(absl::Milliseconds(10));
  EXPECT_THAT(ReportTable(report), HasSubstr("warning: 2.4 % of the requests were sent more than"));
}

TEST(ReportJsonTest, HasEveryFigure) {
  const nlohmann::ordered_json json = ReportJson(SomeReport());
  EXPECT_EQ(json["plan"]["lengths"], "5..512");
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
  EXPECT_EQ(json["send_lag_ms"]["max"], 0.0);
  EXPECT_EQ(json["late_share"], 0.0);
  EXPECT_EQ(json["server_ms"]["compute"], 3.0);
  EXPECT_EQ(json["batch"]["requests"], 2.0);
}

TEST(ReportTest, NothingMeasuredIsAllZero) {
  const LoadReport empty;
  EXPECT_EQ(ReportJson(empty)["tokens_per_s"], 0.0);
  EXPECT_EQ(ReportJson(empty)["goodput"]["share"], 0.0);
  EXPECT_TRUE(ReportJson(empty)["goodput"]["deadline_s"].is_null());
  EXPECT_THAT(ReportTable(empty), HasSubstr("0 ok, 0 errors"));
}

TEST(ProgressLineTest, SaysHowItGoes) {
  EXPECT_EQ(ProgressLine(Statistics(), absl::Seconds(1), absl::Seconds(12)),
            "   12 s  ok 0  errors 0  0.0 req/s  0 tokens/s  p50 0.0 ms  p99 0.0 ms");
}

}  // namespace
}  // namespace attendant::client
