#include "client/load_test/load_generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "attendant/v1/encoder_service.pb.h"
#include "tests/client/support/scratch_file.h"

namespace attendant::client {
namespace load_generator_test {

using testing::ElementsAre;

// A simulation of time and a server: waiting delivers the answers that fall due, in order, and
// takes no real time.
class Simulation : public LoadClock {
 public:
  absl::Time Now() override { return now_; }

  void WaitUntil(absl::Time time) override {
    while (!answers_.empty() && answers_.begin()->first <= time) {
      auto answer = answers_.extract(answers_.begin());
      now_ = std::max(now_, answer.key());
      --under_way_;
      answer.mapped()();
    }
    now_ = std::max(now_, time);
  }

  void Send(int64_t index, LoadContext::Done done) {
    sent_at_.push_back(now_ - absl::UnixEpoch());
    most_under_way_ = std::max(most_under_way_, ++under_way_);
    now_ += send_cost_;
    const bool fails = fail_every_ > 0 && index % fail_every_ == 0;
    answers_.emplace(now_ + service_, [done = std::move(done), fails] {
      if (fails) return done(absl::ResourceExhaustedError("full"));
      done(Execution());
    });
  }

  absl::Duration service_ = absl::Milliseconds(10);
  absl::Duration send_cost_ = absl::ZeroDuration();
  int fail_every_ = 0;

  int under_way_ = 0;
  int most_under_way_ = 0;
  std::vector<absl::Duration> sent_at_;

 private:
  absl::Time now_ = absl::UnixEpoch();
  std::multimap<absl::Time, std::function<void()>> answers_;
};

class LoadGeneratorTest : public testing::Test {
 protected:
  LoadGeneratorTest()
      : workload_(Workload::Make({.method = Method::kEncode, .model = ""},
                                 LengthDistribution::Parse("7").value(), Model())
                      .value()) {}

  static ModelInfo Model() {
    ModelInfo model;
    model.mutable_layer()->set_hidden_size(1);
    return model;
  }

  Statistics Run(LoadPlan plan) {
    LoadGenerator generator(
        std::move(plan),
        {.workload = workload_,
         .send = [this](int64_t index, const WorkItem&,
                        LoadContext::Done done) { simulation_.Send(index, std::move(done)); },
         .clock = simulation_,
         .recorder = recorder_,
         .tick = [this] { return simulation_.Now() < interrupt_at_; },
         .log = log_});
    generator.Run();
    measured_from_ = generator.measured_from();
    measured_until_ = generator.measured_until();
    return recorder_.Total();
  }

  Workload workload_;
  Simulation simulation_;
  Recorder recorder_;
  absl::Time interrupt_at_ = absl::InfiniteFuture();
  absl::Time measured_from_;
  absl::Time measured_until_;
  RequestLog* log_ = nullptr;
};

TEST_F(LoadGeneratorTest, ClosedLoopKeepsItsConcurrency) {
  const Statistics total = Run({.schedule = {}, .concurrency = 3, .duration = absl::Seconds(1)});
  EXPECT_EQ(total.ok, 300);
  EXPECT_EQ(total.tokens, 2100);
  EXPECT_EQ(simulation_.most_under_way_, 3);
  EXPECT_EQ(simulation_.under_way_, 0);
  EXPECT_EQ(total.latency.max(), absl::Milliseconds(10));
  EXPECT_EQ(total.last_answer, absl::UnixEpoch() + absl::Seconds(1));
}

TEST_F(LoadGeneratorTest, StopsAfterTheGivenNumberOfRequests) {
  EXPECT_EQ(Run({.schedule = {}, .concurrency = 4, .requests = 10}).ok, 10);
  EXPECT_EQ(simulation_.sent_at_.size(), 10u);
}

TEST_F(LoadGeneratorTest, MoreConcurrencyThanRequests) {
  EXPECT_EQ(Run({.schedule = {}, .concurrency = 100, .requests = 3}).ok, 3);
}

TEST_F(LoadGeneratorTest, WarmupIsSentButNotMeasured) {
  const Statistics total = Run({.schedule = {},
                                .concurrency = 1,
                                .warmup = absl::Milliseconds(100),
                                .duration = absl::Milliseconds(200)});
  EXPECT_EQ(recorder_.warmup_requests(), 10);
  EXPECT_EQ(total.ok, 20);
  EXPECT_EQ(measured_from_, absl::UnixEpoch() + absl::Milliseconds(100));
}

TEST_F(LoadGeneratorTest, WarmupDoesNotUseUpTheRequests) {
  const Statistics total =
      Run({.schedule = {}, .concurrency = 1, .warmup = absl::Milliseconds(100), .requests = 5});
  EXPECT_EQ(total.ok, 5);
  EXPECT_EQ(simulation_.sent_at_.size(), 15u);
}

TEST_F(LoadGeneratorTest, OpenLoopSendsWhenDueWhateverTheServerDoes) {
  simulation_.service_ = absl::Seconds(100);
  const Statistics total =
      Run({.schedule = ArrivalSchedule(Arrival::kConstant, 100, 1), .requests = 4});
  EXPECT_EQ(total.ok, 4);
  EXPECT_EQ(simulation_.most_under_way_, 4);
  EXPECT_THAT(simulation_.sent_at_, ElementsAre(absl::ZeroDuration(), absl::Milliseconds(10),
                                                absl::Milliseconds(20), absl::Milliseconds(30)));
  EXPECT_EQ(total.send_lag.max(), absl::ZeroDuration());
}

// There is no coordinated omission: sending takes 30 ms, requests are due every 10 ms, and the
// delay before sending counts as waiting.
TEST_F(LoadGeneratorTest, LatencyStartsWhenARequestWasDueNotWhenItWasSent) {
  simulation_.send_cost_ = absl::Milliseconds(30);
  simulation_.service_ = absl::ZeroDuration();
  const Statistics total =
      Run({.schedule = ArrivalSchedule(Arrival::kConstant, 100, 1), .requests = 3});
  // Due at 0, 10, 20; sent at 0, 30, 60.
  EXPECT_THAT(simulation_.sent_at_,
              ElementsAre(absl::ZeroDuration(), absl::Milliseconds(30), absl::Milliseconds(60)));
  EXPECT_EQ(total.send_lag.max(), absl::Milliseconds(40));
  EXPECT_GE(total.latency.max(), absl::Milliseconds(70));
}

TEST_F(LoadGeneratorTest, TellsTheLogAndTheTimelineOfEachRequest) {
  const std::string path = ScratchPath("requests.jsonl");
  const std::unique_ptr<RequestLog> log = std::move(RequestLog::Open(path).value());
  log_ = log.get();
  simulation_.service_ = absl::Milliseconds(600);
  simulation_.fail_every_ = 3;  // the first and the fourth
  Run({.schedule = ArrivalSchedule(Arrival::kConstant, 2, 1),
       .warmup = absl::Milliseconds(500),
       .duration = absl::Milliseconds(1500)});
  ASSERT_TRUE(log->Close().ok());
  EXPECT_EQ(FileBytes(path),
            R"({"step":0,"index":0,"measured":false,"intended_s":-0.500000000,)"
            R"("sent_s":-0.500000000,"answered_s":0.100000000,"status":"RESOURCE_EXHAUSTED",)"
            R"("tokens":7})"
            "\n"
            R"({"step":0,"index":1,"measured":true,"intended_s":0.000000000,"sent_s":0.000000000,)"
            R"("answered_s":0.600000000,"status":"OK","tokens":7,"queue_ms":0.000000,)"
            R"("copy_ms":0.000000,"compute_ms":0.000000})"
            "\n"
            R"({"step":0,"index":2,"measured":true,"intended_s":0.500000000,"sent_s":0.500000000,)"
            R"("answered_s":1.100000000,"status":"OK","tokens":7,"queue_ms":0.000000,)"
            R"("copy_ms":0.000000,"compute_ms":0.000000})"
            "\n"
            R"({"step":0,"index":3,"measured":true,"intended_s":1.000000000,"sent_s":1.000000000,)"
            R"("answered_s":1.600000000,"status":"RESOURCE_EXHAUSTED","tokens":7})"
            "\n");
  const std::vector<SecondOfLoad> seconds = recorder_.Seconds();
  ASSERT_EQ(seconds.size(), 2u);
  EXPECT_EQ(seconds[0].sent, 2);
  EXPECT_EQ(seconds[0].ok, 1);
  EXPECT_EQ(seconds[1].errors.at(absl::StatusCode::kResourceExhausted), 1);
}

TEST_F(LoadGeneratorTest, OpenLoopEndsByDuration) {
  const Statistics total = Run({.schedule = ArrivalSchedule(Arrival::kConstant, 50, 1),
                                .warmup = absl::Seconds(1),
                                .duration = absl::Seconds(2)});
  EXPECT_EQ(recorder_.warmup_requests(), 50);
  EXPECT_EQ(total.ok, 100);
}

// The next request would be due after 1000 s.
TEST_F(LoadGeneratorTest, OpenLoopDoesNotWaitForARequestAfterItsEnd) {
  EXPECT_EQ(
      Run({.schedule = ArrivalSchedule(Arrival::kConstant, 1e-3, 1), .duration = absl::Seconds(3)})
          .ok,
      1);
  EXPECT_EQ(simulation_.Now(), absl::UnixEpoch() + absl::Seconds(3));
  EXPECT_EQ(measured_until_, simulation_.Now());
  Run({.schedule = ArrivalSchedule(Arrival::kConstant, 1e-3, 1), .requests = 1});
  EXPECT_LT(simulation_.Now(), absl::UnixEpoch() + absl::Seconds(4));
  EXPECT_EQ(measured_until_, measured_from_);
}

TEST_F(LoadGeneratorTest, AReplayEndsWithItsLastTime) {
  const Statistics total =
      Run({.schedule = ArrivalSchedule(
               std::make_shared<const std::vector<double>>(std::vector<double>{0, 3, 3.5}), 1)});
  EXPECT_EQ(total.ok, 3);
  EXPECT_THAT(simulation_.sent_at_,
              ElementsAre(absl::ZeroDuration(), absl::Seconds(3), absl::Seconds(3.5)));
}

TEST_F(LoadGeneratorTest, PoissonKeepsItsRate) {
  const Statistics total =
      Run({.schedule = ArrivalSchedule(Arrival::kPoisson, 100, 5), .duration = absl::Seconds(100)});
  EXPECT_NEAR(static_cast<double>(total.ok), 10000, 400);
}

TEST_F(LoadGeneratorTest, ErrorsAreCountedAndTheLoopGoesOn) {
  simulation_.fail_every_ = 5;
  const Statistics total = Run({.schedule = {}, .concurrency = 2, .requests = 50});
  EXPECT_EQ(total.ok, 40);
  EXPECT_EQ(total.errors.at(absl::StatusCode::kResourceExhausted), 10);
}

TEST_F(LoadGeneratorTest, AnInterruptEndsBothLoopsAndWaitsForAnswers) {
  interrupt_at_ = absl::UnixEpoch() + absl::Seconds(1);
  EXPECT_NEAR(static_cast<double>(Run({.schedule = {}, .concurrency = 1}).ok), 100, 4);
  EXPECT_EQ(simulation_.under_way_, 0);
  interrupt_at_ = simulation_.Now() + absl::Seconds(1);
  const int64_t before = recorder_.Total().ok;
  const int64_t after = Run({.schedule = ArrivalSchedule(Arrival::kConstant, 50, 1)}).ok;
  EXPECT_NEAR(static_cast<double>(after - before), 50, 3);
  EXPECT_EQ(simulation_.under_way_, 0);
}

}  // namespace load_generator_test
}  // namespace attendant::client
