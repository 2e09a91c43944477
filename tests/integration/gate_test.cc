// Tests of the real server behind a TCP gate that cuts, stalls or delays connections:
// whatever happens to one, its calls end, and the server gets back what they held.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attendant/v1/encoder_service.grpc.pb.h"
#include "tests/integration/server_process.h"
#include "tests/server/support/wire_tensors.h"
#include "tests/support/raw_http2.h"
#include "tests/support/tcp_gate.h"

namespace attendant::server {
namespace gate_test {

using ::testing::HasSubstr;

// One sequence; with the probabilities of 4 heads, the answer takes 16 length^2 bytes more.
v1::AttendRequest Request(int64_t length, bool probabilities) {
  v1::AttendRequest request =
      AttendOf("", FloatTensor({1, length, 32}, SomeValues(length * 32, 1)));
  request.set_return_attention_probabilities(probabilities);
  return request;
}

// The request, 50 KiB, fits into the window that a server of HTTP/2 grants at first: further
// windows would come with the answers, which tests stall. The answer has 2.5 MiB.
v1::AttendRequest BigAnswer() { return Request(400, true); }

class GateTest : public testing::Test {
 protected:
  void Start(std::vector<std::string> flags = {}) {
    flags.insert(flags.begin(), {"--model=t=synthetic:tiny", "--max-request-tokens=65536",
                                 "--max-queue-tokens=65536"});
    server_ = std::make_unique<ReadyServer>(std::move(flags));
    gate_ = std::make_unique<TcpGate>(server_->port());
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // else the window grows beyond an answer
    stub_ = v1::EncoderService::NewStub(
        grpc::CreateCustomChannel(gate_->address(), grpc::InsecureChannelCredentials(), arguments));
    EXPECT_TRUE(Attend(*stub_, Request(1, false)).ok());  // connects
    ExpectNothingHeld();  // an answer leaves before its call is counted out
  }

  static grpc::Status Attend(v1::EncoderService::Stub& stub, const v1::AttendRequest& request,
                             v1::AttendResponse* answer = nullptr) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    v1::AttendResponse own;
    return stub.Attend(&context, request, answer == nullptr ? &own : answer);
  }

  // Calls through the gate on another thread.
  std::future<grpc::Status> AttendLater(const v1::AttendRequest& request) {
    return std::async(std::launch::async, [this, request] { return Attend(*stub_, request); });
  }

  // Expects that calls are served, and waits until nothing is left of any.
  void ExpectNothingHeld() {
    EXPECT_TRUE(Attend(*server_->NewStub(), Request(4, false)).ok());
    AwaitMetric(*server_, "attendant_inflight_requests", 0);
    AwaitMetric(*server_, "attendant_receiving_bytes", 0);
    AwaitMetric(*server_, "attendant_request_bytes", 0);
    AwaitMetric(*server_, "attendant_answer_bytes", 0);
  }

  std::unique_ptr<ReadyServer> server_;
  std::unique_ptr<TcpGate> gate_;
  std::unique_ptr<v1::EncoderService::Stub> stub_;
};

TEST_F(GateTest, ACallWhoseConnectionIsCutDuringItsAnswerIsUnavailableAndLeavesNothing) {
  Start();
  gate_->StallAnswers();
  std::future<grpc::Status> call = AttendLater(BigAnswer());
  while (!HasFailure() && Metric(*server_, "attendant_answer_bytes") == 0) {
  }
  gate_->Cut();
  const grpc::Status status = call.get();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
  gate_->Resume();
  ExpectNothingHeld();
  EXPECT_TRUE(Attend(*stub_, Request(4, false)).ok());  // over a new connection
}

TEST_F(GateTest, ACallWhoseConnectionIsCutDuringItsRequestLeavesNothing) {
  Start();
  RawHttp2 raw(gate_->port());
  const uint32_t call = raw.StartCall("/attendant.v1.EncoderService/Attend");
  raw.SendMessage(call, 2'000'000, std::string(1000, 'x'));
  AwaitMetric(*server_, "attendant_inflight_requests", 1);
  gate_->Cut();
  EXPECT_EQ(raw.AwaitEnd(call), "closed");
  ExpectNothingHeld();
}

TEST_F(GateTest, AStalledRequestEndsByTheReceiveTimeout) {
  Start({"--receive-timeout=2s", "--min-receive-rate=1TiB"});
  gate_->StallRequests(/*after=*/200'000);
  const grpc::Status status = AttendLater(Request(32768, false)).get();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(status.error_message(), HasSubstr("the request's body did not arrive"));
  ExpectNothingHeld();
}

TEST_F(GateTest, AStalledAnswerEndsByTheSendTimeout) {
  Start({"--send-timeout=2s"});
  gate_->StallAnswers();
  std::future<grpc::Status> call = AttendLater(BigAnswer());
  AwaitMetric(*server_, "attendant_unsent_answers_total", 1);
  ExpectNothingHeld();
  gate_->Resume();
  EXPECT_FALSE(call.get().ok());
}

TEST_F(GateTest, ADelayedConnectionGetsTheSameAnswer) {
  Start();
  const v1::AttendRequest request = Request(64, true);
  v1::AttendResponse direct, delayed;
  ASSERT_TRUE(Attend(*server_->NewStub(), request, &direct).ok());
  gate_->Delay(absl::Milliseconds(2));
  ASSERT_TRUE(Attend(*stub_, request, &delayed).ok());
  EXPECT_FALSE(direct.output().data().empty());
  EXPECT_EQ(delayed.output().data(), direct.output().data());
  EXPECT_EQ(delayed.attention_probabilities().data(), direct.attention_probabilities().data());
}

}  // namespace gate_test
}  // namespace attendant::server
