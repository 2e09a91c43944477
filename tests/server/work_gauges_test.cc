#include "server/work_gauges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/metrics/server_metrics.h"
#include "tests/server/batching/test_job.h"
#include "tests/server/support/test_server.h"
#include "tests/support/fake_clock.h"

namespace attendant::server {
namespace work_gauges_test {

using ::testing::HasSubstr;

// Returns /metrics with these gauges.
std::string Shown(const Gauges& gauges) { return ServerMetrics("1", "isa", "2").Scrape(gauges); }

// Returns the only series of a gauge there.
std::string Gauge(const std::string& name, const std::string& value) {
  return absl::StrCat("# TYPE ", name, " gauge\n", name, " ", value, "\n");
}

TEST(WorkGaugesTest, ShowTheLoad) {
  FakeClock clock;
  Admission admission({});
  std::array<Budget::Reservation, 3> slots;
  for (Budget::Reservation& slot : slots) ASSERT_TRUE(admission.TakeSlot("p", slot).ok());
  std::array<Budget::Reservation, 2> streams;
  for (Budget::Reservation& stream : streams) ASSERT_TRUE(admission.TakeStream("p", stream).ok());
  std::array<Fate, 4> fates;
  BatchQueue queue(clock, {}, {});
  for (int i = 0; i < 4; ++i) {
    const auto job = std::make_shared<TestJob>(fates[i], i, 100 + i);
    job->slices = {{.tokens = 100 + i, .seconds = 0.375}};
    ASSERT_TRUE(queue.Submit(job).ok());
  }
  Gauges gauges;
  AddLoad(admission, queue, gauges);
  const std::string shown = Shown(gauges);
  EXPECT_THAT(shown, HasSubstr(Gauge("attendant_inflight_requests", "3")));
  EXPECT_THAT(shown, HasSubstr(Gauge("attendant_open_streams", "2")));
  EXPECT_THAT(shown, HasSubstr(Gauge("attendant_queue_requests", "4")));
  EXPECT_THAT(shown, HasSubstr(Gauge("attendant_queue_tokens", "406")));
  EXPECT_THAT(shown, HasSubstr(Gauge("attendant_queue_predicted_seconds", "1.5")));
}

TEST(WorkGaugesTest, ShowTheMemory) {
  FakeClock clock;
  Admission admission({.memory = {1'000'000}});
  Budget::Reservation receiving, request, answer;
  ASSERT_TRUE(admission.Charge({"p", 10, HeldFor::kReceiving}, receiving).ok());
  ASSERT_TRUE(admission.Charge({"p", 200, HeldFor::kRequest}, request).ok());
  ASSERT_TRUE(admission.Charge({"p", 3000, HeldFor::kAnswer}, answer).ok());
  CrossKvStore cross_kv(clock, 100'000, absl::Minutes(10), &admission.memory());
  const TokenLayout layout{.sequences = 1,
                           .padded_length = 1,
                           .rows = 1,
                           .cu_seqlens = {0, 1},
                           .positions = {0},
                           .runs = {{0, 1}}};
  auto memory = cross_kv.Reserve({TestModels().at("tiny"), 1, layout});
  ASSERT_TRUE(memory.ok()) << memory.status();
  const int64_t bytes = (*memory)->bytes();
  EXPECT_GT(bytes, 0);
  cross_kv.Add(*std::move(memory), absl::Seconds(5));
  const auto one = cross_kv.Hold(700), another = cross_kv.Hold(77);
  ASSERT_TRUE(one.ok() && another.ok());
  Gauges gauges;
  AddMemory(admission, cross_kv, gauges);
  const std::string shown = Shown(gauges);
  EXPECT_THAT(shown, HasSubstr(Gauge("attendant_receiving_bytes", "10")));
  EXPECT_THAT(shown, HasSubstr(Gauge("attendant_request_bytes", "200")));
  EXPECT_THAT(shown, HasSubstr(Gauge("attendant_answer_bytes", "3000")));
  EXPECT_THAT(shown, HasSubstr(Gauge("attendant_budget_bytes", "1000000")));
  EXPECT_THAT(shown, HasSubstr(Gauge("attendant_registered_memories", "1")));
  EXPECT_THAT(shown, HasSubstr(Gauge("attendant_registered_memory_bytes", absl::StrCat(bytes))));
  EXPECT_THAT(shown, HasSubstr(Gauge("attendant_stream_sequences", "2")));
  EXPECT_THAT(shown, HasSubstr(Gauge("attendant_stream_sequence_bytes", "777")));
}

TEST(WorkGaugesTest, ShowTheCache) {
  CacheCounts counts;
  counts.lookups = {{{.hits = 5, .misses = 7}, {.hits = 1, .misses = 2}}};
  counts.entries = 3;
  counts.bytes = 4096;
  Gauges gauges;
  AddCache(counts, gauges);
  const std::string shown = Shown(gauges);
  EXPECT_THAT(shown, HasSubstr(Gauge("attendant_cache_entries", "3")));
  EXPECT_THAT(shown, HasSubstr(Gauge("attendant_cache_bytes", "4096")));
  EXPECT_THAT(shown, HasSubstr("# TYPE attendant_cache_hits_total counter\n"
                               "attendant_cache_hits_total{kind=\"vectors\"} 5\n"
                               "attendant_cache_hits_total{kind=\"tokens\"} 1\n"));
  EXPECT_THAT(shown, HasSubstr("# TYPE attendant_cache_misses_total counter\n"
                               "attendant_cache_misses_total{kind=\"vectors\"} 7\n"
                               "attendant_cache_misses_total{kind=\"tokens\"} 2\n"));
}

TEST(WorkGaugesTest, AreZeroWithoutWork) {
  FakeClock clock;
  const Admission admission({});
  const BatchQueue queue(clock, {}, {});
  CrossKvStore cross_kv(clock, 1000, absl::Minutes(10));
  Gauges gauges;
  AddLoad(admission, queue, gauges);
  AddMemory(admission, cross_kv, gauges);
  AddCache({}, gauges);
  for (const prometheus::MetricFamily& family : gauges.families()) {
    EXPECT_NE(family.help, "") << family.name;
    if (family.name == "attendant_budget_bytes") continue;
    for (const prometheus::ClientMetric& series : family.metric) {
      EXPECT_EQ(series.gauge.value, 0) << family.name;
    }
  }
}

}  // namespace work_gauges_test
}  // namespace attendant::server
