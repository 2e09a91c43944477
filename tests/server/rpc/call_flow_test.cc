// Tests of a unary call from its headers to its end: slots, permits, timeouts, cancellation and
// drain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "tests/server/support/pending_attend.h"
#include "tests/server/support/test_server.h"
#include "tests/server/support/wire_tensors.h"
#include "tests/support/raw_call.h"
#include "tests/support/raw_http2.h"

namespace attendant::server {
namespace call_flow_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kAttend[] = "/attendant.v1.EncoderService/Attend";
constexpr char kPushback[] = "grpc-retry-pushback-ms";
constexpr char kReason[] = "attendant-reason";

v1::AttendRequest Request(uint32_t seed, int64_t length = 3) {
  return AttendOf("tiny", FloatTensor({1, length, 32}, SomeValues(length * 32, seed)));
}

std::string CountOf(const std::string& code, int count) {
  return "attendant_requests_total{code=\"" + code + "\",method=\"Attend\",model=\"tiny\"} " +
         std::to_string(count);
}

// A server whose only instance holds a batch, so that further jobs wait in the queue.
class BusyServer : public TestServer {
 public:
  explicit BusyServer(const TestServerOptions& options = {})
      : TestServer(WithClosedGate(options)), held_(stub(), Request(1)) {
    gate().AwaitBlocked();
  }

  // Lets the instance go on, and returns the held call when it has been answered.
  const PendingAttend& Release() {
    gate().Open();
    EXPECT_TRUE(held_.Wait().ok());
    return held_;
  }

 private:
  static TestServerOptions WithClosedGate(TestServerOptions options) {
    options.gate_closed = true;
    return options;
  }

  PendingAttend held_;
};

TEST(CallFlowTest, WithoutASlotACallEndsAtItsHeaders) {
  TestServerOptions options;
  options.admission.slots = {1};
  BusyServer server(options);
  // No message is ever sent on this call.
  RawCall second(server.channel(), kAttend);
  const grpc::Status status = second.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(),
            "all request slots are taken (1 of 1, --max-inflight); retry later");
  EXPECT_EQ(second.Trailer(kPushback), "100");
  EXPECT_EQ(second.Trailer(kReason), "slots");
  EXPECT_EQ(server.Release().Trailer(kPushback), "none");
  server.AwaitInflight(0);
  server.ExpectMetrics(HasSubstr("code=\"RESOURCE_EXHAUSTED\",method=\"Attend\",model=\"\"} 1"));
  server.ExpectMetrics(HasSubstr("attendant_refusals_total{method=\"Attend\",reason=\"slots\"} 1"));
}

TEST(CallFlowTest, ABodyThatDoesNotComeIsGivenUp) {
  TestServerOptions options;
  options.limits.receive_timeout = absl::Milliseconds(50);
  options.limits.min_receive_rate = int64_t{1} << 30;
  TestServer server(options);
  RawCall call(server.channel(), kAttend);
  const grpc::Status status = call.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(status.error_message(),
            "the request's body did not arrive within 50ms and a second for each 1073741824 bytes "
            "(--min-receive-rate)");
  server.AwaitInflight(0);
  server.AwaitNothingReceiving();
}

TEST(CallFlowTest, ACallWithoutAMessageIsRefused) {
  TestServer server;
  RawCall call(server.channel(), kAttend);
  call.WritesDone();
  const grpc::Status status = call.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "the call ended without a request message");
}

TEST(CallFlowTest, ACallerNeedNotHalfClose) {
  TestServer server;
  RawCall call(server.channel(), kAttend);
  ASSERT_TRUE(call.Write(Request(1).SerializeAsString()));
  v1::AttendResponse response;
  EXPECT_TRUE(call.Read(&response));
  EXPECT_TRUE(response.has_output());
  EXPECT_TRUE(call.Finish().ok());
}

TEST(CallFlowTest, AMalformedMessageIsRefused) {
  TestServer server;
  RawCall call(server.channel(), kAttend);
  call.Write("\xff\xff");
  EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST(CallFlowTest, AMessageBeyondTheCapIsRefused) {
  TestServerOptions options;
  options.limits.max_request_bytes = 1000;
  TestServer server(options);
  v1::AttendResponse response;
  const grpc::Status status = server.Attend(Request(1, 16), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  server.AwaitInflight(0);
}

TEST(CallFlowTest, AnUnknownMethodEndsAtItsHeaders) {
  TestServer server;
  for (const char* method : {"/attendant.v1.EncoderService/Decode", "/other.Service/Attend"}) {
    RawCall call(server.channel(), method);
    EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::UNIMPLEMENTED);
  }
}

TEST(CallFlowTest, ACancelledRequestIsNeverComputed) {
  BusyServer server;
  PendingAttend second(server.stub(), Request(2));
  server.AwaitQueued(1);
  second.Cancel();
  EXPECT_EQ(second.Wait().error_code(), grpc::StatusCode::CANCELLED);
  // Its slot is freed before the queue reaches the job.
  server.AwaitInflight(1);
  server.Release();
  v1::AttendResponse response;
  EXPECT_TRUE(server.Attend(Request(3), &response).ok());
  EXPECT_EQ(server.gate().passed(), 2);
  EXPECT_EQ(response.execution().batch_requests(), 1);
  server.ExpectMetrics(HasSubstr(CountOf("CANCELLED", 1)));
  server.ExpectMetrics(HasSubstr(CountOf("OK", 2)));
}

TEST(CallFlowTest, ARequestWhoseDeadlinePassedIsNeverComputed) {
  BusyServer server;
  PendingAttend second(server.stub(), Request(2), std::chrono::milliseconds(300));
  EXPECT_EQ(second.Wait().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  server.AwaitInflight(1);
  server.Release();
  v1::AttendResponse response;
  EXPECT_TRUE(server.Attend(Request(3), &response).ok());
  EXPECT_EQ(server.gate().passed(), 2);
}

TEST(CallFlowTest, AFullQueueRefusesUntilItsBacklogIsDone) {
  TestServerOptions options;
  options.queue.max_jobs = 1;
  options.models = ModelOf("tiny", TestModels().at("tiny")->encoder->description());
  options.models.at("tiny")->cost->SetRates({.product_flops = 1e5});
  BusyServer server(options);
  PendingAttend second(server.stub(), Request(2));
  server.AwaitQueued(1);
  const double waiting = 1000 * server.queue().counts().seconds;
  ASSERT_GT(waiting, 100);
  ASSERT_LT(waiting, 5000);
  PendingAttend third(server.stub(), Request(3));
  EXPECT_EQ(third.Wait().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  // Behind it, at most as much runs.
  EXPECT_GE(std::stod(third.Trailer(kPushback)), std::floor(waiting));
  EXPECT_LE(std::stod(third.Trailer(kPushback)), std::ceil(2 * waiting));
  EXPECT_EQ(third.Trailer(kReason), "queue_jobs");
  server.Release();
  EXPECT_TRUE(second.Wait().ok());
}

TEST(CallFlowTest, AFullQueueRefusesBeforeTheBodyIsSent) {
  TestServerOptions options;
  options.queue.max_jobs = 1;
  BusyServer server(options);
  PendingAttend second(server.stub(), Request(2));
  server.AwaitQueued(1);
  RawCall third(server.channel(), kAttend);
  EXPECT_EQ(third.Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(third.Trailer(kReason), "queue_jobs");
  server.Release();
  EXPECT_TRUE(second.Wait().ok());
}

TEST(CallFlowTest, OneAddressLeavesRoomInTheQueueToOthers) {
  TestServerOptions options;
  options.queue = {.max_jobs = 4, .reserved_jobs = 1};
  BusyServer server(options);
  RawHttp2 greedy(server.port(), {.source = "127.0.0.2"});
  const std::string message = Request(2).SerializeAsString();
  for (int64_t waiting = 1; waiting <= 3; ++waiting) {
    const uint32_t call = greedy.StartCall(kAttend);
    greedy.SendMessage(call, static_cast<uint32_t>(message.size()), message);
    greedy.HalfClose(call);
    server.AwaitQueued(waiting);
  }
  EXPECT_THAT(greedy.AwaitEnd(greedy.StartCall(kAttend)),
              AllOf(HasSubstr("share of the queue's jobs"), HasSubstr("peer_share")));
  PendingAttend quiet(server.stub(), Request(3));
  server.AwaitQueued(4);
  server.Release();
  EXPECT_TRUE(quiet.Wait().ok());
}

TEST(CallFlowTest, ADeadlineThatCannotBeMetIsRefusedAtOnce) {
  TestServerOptions options;
  options.models = ModelOf("tiny", TestModels().at("tiny")->encoder->description());
  options.models.at("tiny")->cost->SetRates({.product_flops = 1});  // hours
  TestServer server(options);
  PendingAttend call(server.stub(), Request(1), std::chrono::minutes(1));
  const grpc::Status status = call.Wait();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(status.error_message(), HasSubstr("the deadline cannot be met"));
  EXPECT_EQ(call.Trailer(kReason), "deadline_hopeless");
  EXPECT_EQ(server.gate().passed(), 0);
}

TEST(CallFlowTest, ACancelledRequestGivesBackItsRoomAtOnce) {
  BusyServer server;
  PendingAttend second(server.stub(), Request(2));
  server.AwaitQueued(1);
  second.Cancel();
  server.AwaitQueued(0);  // although the only instance is busy
  EXPECT_EQ(second.Wait().error_code(), grpc::StatusCode::CANCELLED);
  server.Release();
}

class ReceivingPermitTest : public ::testing::Test {
 protected:
  static TestServerOptions RoomForOneBody() {
    TestServerOptions options;
    options.admission.memory = {100000};  // the first permit is of 64 KiB
    return options;
  }
  ReceivingPermitTest() {
    while (server.admission().memory().counts().all() == 0) std::this_thread::yield();
    waiting.emplace(server.stub(), Request(1));
    while (server.admission().memory().counts().waiting == 0) std::this_thread::yield();
  }

  TestServer server{RoomForOneBody()};
  RawCall holder{server.channel(), kAttend};
  std::optional<PendingAttend> waiting;
};

TEST_F(ReceivingPermitTest, BodiesWaitForThem) {
  holder.Cancel();
  EXPECT_TRUE(waiting->Wait().ok());
  server.AwaitNothingReceiving();
}

TEST_F(ReceivingPermitTest, ACallCanBeCancelledWhileItWaits) {
  waiting->Cancel();
  EXPECT_EQ(waiting->Wait().error_code(), grpc::StatusCode::CANCELLED);
  server.AwaitInflight(1);
  while (server.admission().memory().counts().waiting > 0) std::this_thread::yield();
}

// Holds the thread that logs the end of a request until the test has the answer.
class PatientSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  // What it has waited for has come in time, each time.
  bool content() const { return content_; }
  absl::Notification answered;

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const absl::string_view text(message.payload.data(), message.payload.size());
    if (!absl::StartsWith(text, "request ended")) return;
    content_ = content_ && answered.WaitForNotificationWithTimeout(absl::Minutes(1));
  }
  void flush_() override {}

  std::atomic<bool> content_ = true;
};

TEST(CallFlowTest, AnAnswerLeavesBeforeItIsCountedAndLogged) {
  const auto sink = std::make_shared<PatientSink>();
  const std::shared_ptr<spdlog::logger> saved = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", sink));
  {
    TestServerOptions options;
    options.limits.slow_request = absl::Nanoseconds(1);  // every request is logged
    TestServer server(options);
    v1::AttendResponse response;
    EXPECT_TRUE(server.Attend(Request(1), &response).ok());
    sink->answered.Notify();
    server.ExpectMetrics(HasSubstr(CountOf("OK", 1)));
  }
  spdlog::set_default_logger(saved);
  EXPECT_TRUE(sink->content());
}

TEST(CallFlowTest, ADrainingServerAnswersWhatItAcceptedAndRefusesTheRest) {
  BusyServer server;
  server.admission().Close();
  RawCall late(server.channel(), kAttend);
  const grpc::Status status = late.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "the server is draining; retry on another server");
  EXPECT_EQ(late.Trailer(kPushback), "none");
  EXPECT_EQ(late.Trailer(kReason), "draining");
  server.Release();
}

TEST(CallFlowTest, AReadThatFailsWhileDrainingIsUnavailable) {
  TestServer server;
  RawCall call(server.channel(), kAttend);
  server.AwaitInflight(1);
  server.Stop(std::chrono::milliseconds(0));
  EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  server.ExpectMetrics(HasSubstr("code=\"UNAVAILABLE\""));
  server.ExpectMetrics(Not(HasSubstr("code=\"CANCELLED\"")));
}

TEST(CallFlowTest, NeighboursChangeNothing) {
  BusyServer server;
  v1::AttendRequest spoiled = Request(2);
  std::vector<float> values = SomeValues(96, 2);
  values[5] = std::nanf("");
  *spoiled.mutable_hidden_states() = FloatTensor({1, 3, 32}, values);
  PendingAttend second(server.stub(), spoiled);
  PendingAttend third(server.stub(), Request(3, 7));
  PendingAttend fourth(server.stub(), Request(1));
  server.AwaitQueued(3);
  const PendingAttend& first = server.Release();
  ASSERT_TRUE(second.Wait().ok());
  ASSERT_TRUE(third.Wait().ok());
  ASSERT_TRUE(fourth.Wait().ok());
  EXPECT_EQ(fourth.response().execution().batch_requests(), 3);
  EXPECT_EQ(fourth.response().execution().batch_tokens(), 13);
  EXPECT_EQ(first.response().output().data(), fourth.response().output().data());
  EXPECT_EQ(server.gate().passed(), 2);
  server.ExpectMetrics(HasSubstr("attendant_nonfinite_requests_total{model=\"tiny\"} 1"));
  for (float value : ToFloats(third.response().output())) EXPECT_TRUE(std::isfinite(value));
}

}  // namespace call_flow_test
}  // namespace attendant::server
