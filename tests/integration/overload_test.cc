// Tests of the real server when more comes than it can do, or when it comes slowly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "attendant/v1/encoder_service.grpc.pb.h"
#include "tests/integration/server_process.h"
#include "tests/server/support/wire_tensors.h"
#include "tests/support/raw_call.h"
#include "tests/support/raw_http2.h"

namespace attendant::server {
namespace overload_test {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr char kEncode[] = "/attendant.v1.EncoderService/Encode";
constexpr int64_t kMiB = 1 << 20;

// Sequences of the same token, of which one vector each is wanted, so that answers are small.
v1::EncodeRequest Tokens(int64_t sequences, int64_t length) {
  v1::EncodeRequest request;
  *request.mutable_token_ids() =
      IntegerTensor({sequences, length}, std::vector<int64_t>(sequences * length, 7), v1::INT8);
  request.set_omit_hidden_states(true);
  request.set_return_pooled(true);
  request.set_pooling(v1::MEAN);
  return request;
}

// `mib` MiB of rows of 32 columns, in sequences of 1024.
v1::EncodeRequest Rows(int64_t mib) {
  const int64_t sequences = mib * kMiB / (1024 * 32 * static_cast<int64_t>(sizeof(float)));
  v1::EncodeRequest request;
  *request.mutable_hidden_states() =
      FloatTensor({sequences, 1024, 32}, std::vector<float>(sequences * 1024 * 32));
  return request;
}

// None of the requests has a token to compute, so that all would fit into one batch. With their
// answers they are 384 MiB.
TEST(OverloadOfTheServerTest, RequestsWithoutTokensStayInTheMemoryLimit) {
  ReadyServer server({"--model=t=synthetic:tiny", "--memory-limit-bytes=250MiB",
                      "--max-request-tokens=131072", "--max-queue-tokens=131072"});
  v1::EncodeRequest request = Rows(16);
  const int64_t sequences = request.hidden_states().shape(0);
  *request.mutable_attention_mask() =
      IntegerTensor({sequences, 1024}, std::vector<int64_t>(sequences * 1024), v1::INT8);
  // Connect before the first body arrives: the server closes new connections when its memory is
  // used up.
  std::vector<std::unique_ptr<v1::EncoderService::Stub>> stubs;
  for (int i = 0; i < 12; ++i) {
    const auto channel = server.NewChannel();
    ASSERT_TRUE(
        channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(30)));
    stubs.push_back(v1::EncoderService::NewStub(channel));
  }
  std::vector<std::future<std::string>> calls;
  for (const auto& stub : stubs) {
    calls.push_back(std::async(std::launch::async, [&stub, &request]() -> std::string {
      grpc::ClientContext context;
      v1::EncodeResponse response;
      const grpc::Status status = stub->Encode(&context, request, &response);
      return status.ok() ? "ok" : TrailerOf(context, "attendant-reason");
    }));
  }
  const int64_t budget = Metric(server, "attendant_budget_bytes");
  int answered = 0;
  for (std::future<std::string>& call : calls) {
    while (!HasFailure() && call.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      EXPECT_LE(BytesHeld(server), budget);
    }
    const std::string end = call.get();
    EXPECT_THAT(end, AnyOf("ok", "memory", "peer_share"));
    answered += end == "ok";
  }
  EXPECT_GT(answered, 0);
  // The sanitizers take memory of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LE(ProcessStatus(server, "VmHWM"), 250 * 1024);
#endif
  AwaitMetric(server, "attendant_inflight_requests", 0);
  EXPECT_EQ(BytesHeld(server), 0);
}

// Sends a body of 3 MiB at a rate of bytes a second, as long as the call has not ended. Returns the
// call's end.
std::string SendSlowly(RawHttp2& caller, double rate) {
  constexpr size_t kPiece = 16 << 10;
  v1::EncodeRequest request = Rows(3);
  request.set_omit_hidden_states(true);
  request.set_return_pooled(true);
  request.set_pooling(v1::MEAN);
  const std::string message = request.SerializeAsString();
  const uint32_t call = caller.StartCall(kEncode);
  caller.SendMessage(call, static_cast<uint32_t>(message.size()), "");
  const absl::Time begin = absl::Now();
  for (size_t sent = 0; sent < message.size() && !caller.HasEnded(call); sent += kPiece) {
    // By the clock, so that a late piece delays no other.
    absl::SleepFor(begin + absl::Seconds(static_cast<double>(sent) / rate) - absl::Now());
    caller.SendData(call, message.substr(sent, kPiece));
  }
  caller.HalfClose(call);
  return caller.AwaitEnd(call);
}

class SlowSenderTest : public testing::Test {
 protected:
  ReadyServer server_{{"--model=t=synthetic:tiny", "--max-request-tokens=32768",
                       "--receive-timeout=1s", "--min-receive-rate=1MiB"}};
  RawHttp2 caller_{server_.port()};
};

// The body takes two seconds.
TEST_F(SlowSenderTest, AnHonestOneIsAnsweredAlthoughItTakesLongerThanTheTimeout) {
  EXPECT_THAT(SendSlowly(caller_, 1.5 * kMiB), testing::Not(HasSubstr("arrive")));
  server_.ExpectMetrics(
      HasSubstr("attendant_requests_total{code=\"OK\",method=\"Encode\",model=\"t\"} 1\n"));
}

TEST_F(SlowSenderTest, OneBelowTheLeastRateIsGivenUp) {
  EXPECT_THAT(SendSlowly(caller_, 0.2 * kMiB),
              HasSubstr("the request's body did not arrive within 1s and a second for each 1048576 "
                        "bytes (--min-receive-rate)"));
  server_.ExpectMetrics(
      HasSubstr("attendant_requests_total{code=\"DEADLINE_EXCEEDED\",method=\"Encode\","));
}

// Waits for the ends of the calls, and returns how many were refused as hopeless.
int CountRefused(RawHttp2& caller, const std::vector<uint32_t>& calls) {
  int refused = 0;
  for (const uint32_t call : calls) {
    if (caller.AwaitEnd(call).find("deadline_hopeless") != std::string::npos) ++refused;
  }
  return refused;
}

// A burst of more work than fits into its deadlines on any CPU, in one moment. Of calls so short
// that on a slow or busy machine, too, the late ones, whose deadlines would come first, take their
// turn by how long they have waited.
TEST(OverloadOfTheServerTest, WhatCannotBeDoneInTimeIsRefusedAtOnceAndWithoutItsBody) {
  constexpr int kConnections = 16, kCalls = 100, kWithoutBody = 20;
  ReadyServer server({"--model=m=synthetic:minilm-l6", "--instances=1", "--threads-per-instance=1",
                      "--max-inflight=2000", "--max-queue-requests=2000"});
  const std::string message = Tokens(1, 16).SerializeAsString();
  std::vector<std::unique_ptr<RawHttp2>> burst;
  std::vector<uint32_t> calls;  // of each connection
  for (int connection = 0; connection < kConnections; ++connection) {
    burst.push_back(std::make_unique<RawHttp2>(server.port()));
    calls.clear();
    for (int i = 0; i < kCalls; ++i) {
      calls.push_back(burst.back()->StartCall(kEncode, {{"grpc-timeout", "1500m"}}));
      burst.back()->SendMessage(calls.back(), static_cast<uint32_t>(message.size()), message);
      burst.back()->HalfClose(calls.back());
    }
  }
  // The queue is as full as deadlines allow once a call has been refused for it.
  const std::string refusals =
      "attendant_refusals_total{method=\"Encode\",reason=\"deadline_hopeless\"} ";
  server.ExpectMetrics(HasSubstr(refusals));
  RawHttp2 late(server.port());
  std::vector<uint32_t> without_body;
  for (int i = 0; i < kWithoutBody; ++i) {
    without_body.push_back(late.StartCall(kEncode, {{"grpc-timeout", "800m"}}));
  }
  EXPECT_GT(CountRefused(late, without_body), kWithoutBody / 2);
  int refused = 0;
  for (const std::unique_ptr<RawHttp2>& connection : burst)
    refused += CountRefused(*connection, calls);
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, kConnections * kCalls);
  server.ExpectMetrics(HasSubstr("attendant_requests_total{code=\"OK\",method=\"Encode\","));
  EXPECT_EQ(Metric(server, "attendant_dead_rows_total{model=\"m\"}"), 0);
}

TEST(OverloadOfTheServerTest, SmallCallsAreAnsweredWhileALongOneIsComputed) {
  ReadyServer server(
      {"--model=m=synthetic:minilm-l6", "--instances=1", "--threads-per-instance=1"});
  const auto encode = [&server](const v1::EncodeRequest& request) {
    grpc::ClientContext context;
    v1::EncodeResponse response;
    const grpc::Status status = server.NewStub()->Encode(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.execution();
  };
  std::future<v1::Execution> bulk =
      std::async(std::launch::async, [&encode] { return encode(Tokens(32, 128)); });
  server.ExpectMetrics(HasSubstr("attendant_batches_total{"));  // a slice of it is computed
  for (int i = 0; i < 3; ++i) {
    const v1::Execution small = encode(Tokens(1, 16));
    EXPECT_EQ(small.tokens(), 16);
    EXPECT_LT(small.batch_tokens(), 32 * 128);
    EXPECT_NE(bulk.wait_for(std::chrono::seconds(0)), std::future_status::ready) << i;
  }
  const v1::Execution whole = bulk.get();
  EXPECT_EQ(whole.tokens(), 32 * 128);
  EXPECT_LT(whole.batch_tokens(), 32 * 128);  // the largest of its slices
}

}  // namespace overload_test
}  // namespace attendant::server
