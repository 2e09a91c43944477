#include "server/metrics/server_metrics.h"

#include <unistd.h>

#include <map>
#include <sstream>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attendant::server {
namespace server_metrics_test {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;
using Samples = std::map<std::string, double>;

// Returns "name{labels}" -> value for every sample line.
Samples Parse(const std::string& text) {
  Samples samples;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t space = line.rfind(' ');
    samples[line.substr(0, space)] = std::stod(line.substr(space + 1));
  }
  return samples;
}

class ServerMetricsTest : public testing::Test {
 protected:
  Samples Scrape(const Gauges& gauges = {}) const { return Parse(metrics_.Scrape(gauges)); }

  ServerMetrics metrics_{"1.2.3", "avx2", "2.6.3"};
};

RequestRecord Answered() {
  return {.method = "Attend",
          .model = "m",
          .code = absl::StatusCode::kOk,
          .tokens = 30,
          .padded_tokens = 100,
          .queued = absl::Milliseconds(2)};
}

TEST_F(ServerMetricsTest, CountsRequestsByMethodModelAndCode) {
  metrics_.RecordRequest(Answered());
  metrics_.RecordRequest(Answered());
  RequestRecord refused;
  refused.method = "Encode";
  refused.code = absl::StatusCode::kResourceExhausted;
  metrics_.RecordRequest(refused);
  EXPECT_EQ(metrics_.answered(), 2);
  const Samples samples = Scrape();
  EXPECT_THAT(samples, Contains(Pair(
                           R"(attendant_requests_total{code="OK",method="Attend",model="m"})", 2)));
  EXPECT_THAT(
      samples,
      Contains(Pair(
          R"(attendant_requests_total{code="RESOURCE_EXHAUSTED",method="Encode",model=""})", 1)));
}

TEST_F(ServerMetricsTest, CountsTokensAndWaitingOfAnsweredRequestsOnly) {
  metrics_.RecordRequest(Answered());
  RequestRecord never_queued = Answered();
  never_queued.tokens = never_queued.padded_tokens = 0;
  never_queued.queued.reset();
  metrics_.RecordRequest(never_queued);
  RequestRecord failed = Answered();
  failed.code = absl::StatusCode::kDeadlineExceeded;
  metrics_.RecordRequest(failed);
  const Samples samples = Scrape();
  EXPECT_THAT(samples, Contains(Pair(R"(attendant_tokens_total{model="m"})", 30)));
  EXPECT_THAT(samples, Contains(Pair(R"(attendant_padding_tokens_avoided_total{model="m"})", 70)));
  EXPECT_THAT(samples, Contains(Pair(R"(attendant_queue_seconds_count{model="m"})", 1)));
  EXPECT_THAT(samples,
              Contains(Pair(R"(attendant_queue_seconds_bucket{model="m",le="0.001"})", 0)));
  EXPECT_THAT(samples,
              Contains(Pair(R"(attendant_queue_seconds_bucket{model="m",le="0.0025"})", 1)));
}

TEST_F(ServerMetricsTest, DescribesBatches) {
  BatchRecord batch;
  batch.model = "m";
  batch.tokens = 100;
  batch.requests = 3;
  batch.copy_in = absl::Microseconds(30);
  batch.copy_out = absl::Microseconds(20);
  batch.compute = absl::Milliseconds(40);
  batch.fully_masked_rows = 12;
  batch.nonfinite_requests = 1;
  batch.dead_rows = 7;
  batch.cost_ratio = 1.05;
  batch.close = "seconds";
  batch.slacks = {absl::Milliseconds(30), absl::Milliseconds(300)};
  metrics_.RecordBatch(batch);
  const Samples samples = Scrape();
  EXPECT_THAT(samples, Contains(Pair(R"(attendant_batch_tokens_bucket{model="m",le="64"})", 0)));
  EXPECT_THAT(samples, Contains(Pair(R"(attendant_batch_tokens_bucket{model="m",le="128"})", 1)));
  EXPECT_THAT(samples, Contains(Pair(R"(attendant_batch_requests_sum{model="m"})", 3)));
  EXPECT_THAT(samples, Contains(Pair(R"(attendant_batches_total{close="seconds",model="m"})", 1)));
  EXPECT_THAT(samples,
              Contains(Pair(R"(attendant_deadline_slack_seconds_bucket{model="m",le="0.05"})", 1)));
  EXPECT_THAT(samples, Contains(Pair(R"(attendant_deadline_slack_seconds_count{model="m"})", 2)));
  EXPECT_THAT(samples, Contains(Pair(R"(attendant_batch_cost_ratio_bucket{model="m",le="1"})", 0)));
  EXPECT_THAT(samples,
              Contains(Pair(R"(attendant_batch_cost_ratio_bucket{model="m",le="1.1"})", 1)));
  EXPECT_THAT(samples,
              Contains(Pair(R"(attendant_batch_copy_seconds_bucket{model="m",le="0.0001"})", 1)));
  EXPECT_THAT(samples,
              Contains(Pair(R"(attendant_batch_compute_seconds_bucket{model="m",le="0.05"})", 1)));
  EXPECT_THAT(samples,
              Contains(Pair(R"(attendant_batch_compute_seconds_bucket{model="m",le="60"})", 1)));
  EXPECT_THAT(samples, Contains(Pair(R"(attendant_keyless_rows_total{model="m"})", 12)));
  EXPECT_THAT(samples, Contains(Pair(R"(attendant_dead_rows_total{model="m"})", 7)));
  EXPECT_THAT(samples, Contains(Pair(R"(attendant_nonfinite_requests_total{model="m"})", 1)));
}

TEST_F(ServerMetricsTest, ShowsGaugesAsTheyAreAtTheScrape) {
  Gauges gauges;
  gauges.Add("attendant_receiving_bytes", "Memory.", int64_t{1} << 33);
  gauges.Add("attendant_queue_predicted_seconds", "Time.", 1.5);
  gauges.Add("attendant_model_bytes", "Bytes.", 4096, {{"part", "weights"}, {"model", "m"}});
  gauges.Add("attendant_ready", "Ready.", 1);
  gauges.Add("attendant_model_bytes", "Bytes.", 1024, {{"part", "activations"}, {"model", "m"}});
  gauges.AddTotal("attendant_cache_hits_total", "Hits.", 5, {{"kind", "vectors"}});
  const std::string text = metrics_.Scrape(gauges);
  EXPECT_THAT(text, HasSubstr("# HELP attendant_receiving_bytes Memory.\n"
                              "# TYPE attendant_receiving_bytes gauge\n"));
  EXPECT_THAT(text, HasSubstr("# HELP attendant_model_bytes Bytes.\n"
                              "# TYPE attendant_model_bytes gauge\n"
                              "attendant_model_bytes{model=\"m\",part=\"weights\"} 4096\n"
                              "attendant_model_bytes{model=\"m\",part=\"activations\"} 1024\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE attendant_cache_hits_total counter\n"));
  const Samples samples = Parse(text);
  EXPECT_THAT(samples, Contains(Pair("attendant_receiving_bytes", 8589934592.0)));
  EXPECT_THAT(samples, Contains(Pair("attendant_queue_predicted_seconds", 1.5)));
  EXPECT_THAT(samples, Contains(Pair(R"(attendant_cache_hits_total{kind="vectors"})", 5)));
  EXPECT_THAT(samples, Contains(Pair("attendant_ready", 1)));
}

TEST_F(ServerMetricsTest, TimesRequestsByMethodModelAndCode) {
  RequestRecord answered = Answered();
  answered.elapsed = absl::Milliseconds(3);
  metrics_.RecordRequest(answered);
  answered.elapsed = absl::Milliseconds(30);
  metrics_.RecordRequest(answered);
  const Samples samples = Scrape();
  const std::string labels = R"({code="OK",method="Attend",model="m")";
  EXPECT_THAT(samples,
              Contains(Pair("attendant_request_seconds_bucket" + labels + R"(,le="0.005"})", 1)));
  EXPECT_THAT(samples,
              Contains(Pair("attendant_request_seconds_bucket" + labels + R"(,le="0.05"})", 2)));
  EXPECT_THAT(samples, Contains(Pair("attendant_request_seconds_sum" + labels + "}", 0.033)));
}

TEST_F(ServerMetricsTest, CountsRefusedTokens) {
  metrics_.RecordRefusedToken("metrics", absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(Scrape(),
              Contains(Pair(
                  R"(attendant_token_refusals_total{code="UNAUTHENTICATED",scope="metrics"})", 1)));
}

TEST_F(ServerMetricsTest, FollowsTheProcess) {
  const Samples before = Scrape();
  EXPECT_GT(before.at("process_cpu_seconds_total"), 0);
  const int descriptor = dup(0);
  const Samples after = Scrape();
  close(descriptor);
  EXPECT_EQ(after.at("process_open_fds"), before.at("process_open_fds") + 1);
  EXPECT_GE(after.at("process_cpu_seconds_total"), before.at("process_cpu_seconds_total"));
}

TEST_F(ServerMetricsTest, DescribesTheProcess) {
  const Samples samples = Scrape();
  EXPECT_THAT(
      samples,
      Contains(Pair(R"(attendant_build_info{isa="avx2",onednn="2.6.3",version="1.2.3"})", 1)));
  EXPECT_GT(samples.at("process_resident_memory_bytes"), 100000);
  EXPECT_GT(samples.at("process_start_time_seconds"), 1.6e9);
}

TEST_F(ServerMetricsTest, EverySeriesHasHelp) {
  metrics_.RecordRequest(Answered());
  metrics_.RecordBatch(BatchRecord());
  const std::string text = metrics_.Scrape({});
  EXPECT_THAT(
      text, HasSubstr("# HELP attendant_requests_total Requests that have ended, by status code.\n"
                      "# TYPE attendant_requests_total counter\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE attendant_queue_seconds histogram\n"));
}

TEST_F(ServerMetricsTest, LosesNothingFromManyThreads) {
  const RequestRecord answered = Answered();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) metrics_.RecordRequest(answered);
      metrics_.Scrape({});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(Scrape(), Contains(Pair(R"(attendant_tokens_total{model="m"})", 60000)));
}

}  // namespace server_metrics_test
}  // namespace attendant::server
