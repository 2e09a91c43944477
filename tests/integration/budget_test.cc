// Tests of callers that hold on to what a running server has: answers that nobody reads, bodies
// that stop half-way, streams that say nothing. A second caller, from another address where shares
// decide, has to be served meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
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
namespace budget_test {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kAttend[] = "/attendant.v1.EncoderService/Attend";
constexpr char kReflection[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
constexpr char kStream[] = "/attendant.v1.EncoderService/EncodeStream";
const RawHttp2Options kOtherAddress = {.source = "127.0.0.2"};

// One sequence of `length` rows of 32 columns; with the probabilities of 4 heads, the answer takes
// 16 length^2 bytes more.
v1::AttendRequest Request(int64_t length, bool probabilities) {
  v1::AttendRequest request =
      AttendOf("t", FloatTensor({1, length, 32}, std::vector<float>(length * 32)));
  request.set_return_attention_probabilities(probabilities);
  return request;
}

grpc::Status Attend(const ReadyServer& server, const v1::AttendRequest& request,
                    grpc::ClientContext& context) {
  v1::AttendResponse response;
  return server.NewStub()->Attend(&context, request, &response);
}

void ExpectGoodCallerIsServed(const ReadyServer& server) {
  grpc::ClientContext context;
  const grpc::Status status = Attend(server, Request(4, false), context);
  EXPECT_TRUE(status.ok()) << status.error_code() << " " << status.error_message();
}

// 40 answers of 16 MiB are more than the budget.
TEST(BudgetOfTheServerTest, AnswersThatNobodyReadsStayInTheBudgetAndEnd) {
  ReadyServer server({"--model=t=synthetic:tiny", "--memory-limit-bytes=400MiB",
                      "--max-request-tokens=2048", "--send-timeout=3s"});
  const int64_t budget = Metric(server, "attendant_budget_bytes");
  EXPECT_LT(budget, int64_t{320} << 20);
  RawHttp2 hostile(server.port(), {.source = "127.0.0.2", .initial_window = 0});
  const std::string message = Request(1024, true).SerializeAsString();
  std::vector<uint32_t> calls;
  for (int i = 0; i < 40; ++i) {
    calls.push_back(hostile.StartCall(kAttend));
    hostile.SendMessage(calls.back(), static_cast<uint32_t>(message.size()), message);
    hostile.HalfClose(calls.back());
  }
  while (!testing::Test::HasFailure() && Metric(server, "attendant_answer_bytes") == 0) {
    EXPECT_LE(BytesHeld(server), budget);
  }
  ExpectGoodCallerIsServed(server);
  EXPECT_LE(BytesHeld(server), budget);
  for (const uint32_t call : calls) hostile.AwaitEnd(call);
  AwaitMetric(server, "attendant_inflight_requests", 0);
  EXPECT_EQ(BytesHeld(server), 0);
  EXPECT_GT(Metric(server, "attendant_unsent_answers_total"), 0);
  ExpectGoodCallerIsServed(server);
}

// Each of these might become 43 MB.
TEST(BudgetOfTheServerTest, HalfSentBodiesStallNobodyAndEnd) {
  ReadyServer server({"--model=t=synthetic:tiny", "--max-request-tokens=262144",
                      "--max-queue-tokens=262144", "--receive-timeout=3s",
                      "--min-receive-rate=1TiB"});
  RawHttp2 hostile(server.port(), kOtherAddress);
  std::vector<uint32_t> calls;
  for (int i = 0; i < 30; ++i) {
    calls.push_back(hostile.StartCall(kAttend));
    hostile.SendMessage(calls.back(), 40'000'000, std::string(1000, 'x'));
  }
  AwaitMetric(server, "attendant_inflight_requests", 30);
  ExpectGoodCallerIsServed(server);
  EXPECT_FALSE(hostile.HasEnded(calls.front()));
  EXPECT_THAT(hostile.AwaitEnd(calls.front()), HasSubstr("the request's body did not arrive"));
  for (const uint32_t call : calls) hostile.AwaitEnd(call);
  AwaitMetric(server, "attendant_inflight_requests", 0);
  EXPECT_EQ(BytesHeld(server), 0);
}

TEST(BudgetOfTheServerTest, SmallMethodsHoldASlotUntilTheyAreGivenUp) {
  ReadyServer server({"--model=t=synthetic:tiny", "--max-inflight=40", "--peer-reserve=50"});
  RawHttp2 hostile(server.port(), kOtherAddress);
  std::vector<uint32_t> calls;
  for (const char* method : {"GetModel", "GetTokenizer", "DropMemory", "ListModels"}) {
    calls.push_back(hostile.StartCall(absl::StrCat("/attendant.v1.EncoderService/", method)));
    hostile.SendMessage(calls.back(), 2'000'000, std::string(1000, 'x'));
  }
  calls.push_back(hostile.StartCall("/inference.GRPCInferenceService/ModelStatistics"));
  hostile.SendMessage(calls.back(), 2'000'000, std::string(1000, 'x'));
  AwaitMetric(server, "attendant_inflight_requests", 5);
  grpc::ClientContext context;
  v1::GetModelRequest request;
  v1::GetModelResponse response;
  const grpc::Status status = server.NewStub()->GetModel(&context, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.name(), "t");
  for (const uint32_t call : calls) {
    EXPECT_THAT(hostile.AwaitEnd(call), HasSubstr("the request's body did not arrive in time"));
  }
  AwaitMetric(server, "attendant_inflight_requests", 0);
}

// One caller has four streams, and what they hold is in the budget until their time is up.
TEST(BudgetOfTheServerTest, HalfSentReflectionLeavesPlacesToOthersAndEnds) {
  ReadyServer server({"--model=t=synthetic:tiny", "--max-request-tokens=262144",
                      "--max-queue-tokens=262144", "--receive-timeout=2s",
                      "--min-receive-rate=1000000000"});
  RawHttp2 hostile(server.port(), kOtherAddress);
  std::vector<uint32_t> calls;
  for (int i = 0; i < 4; ++i) {
    calls.push_back(hostile.StartCall(kReflection));
    hostile.SendMessage(calls.back(), 30'000'000, std::string(1'000'000, 'x'));
  }
  AwaitMetric(server, "attendant_open_streams", 4);
  EXPECT_THAT(hostile.AwaitEnd(hostile.StartCall(kReflection)), HasSubstr("peer_share"));
  for (const char* address : {"127.0.0.1", "127.0.0.3"}) {
    RawHttp2 tool(server.port(), {.source = address});
    const uint32_t call = tool.StartCall(kReflection);
    tool.HalfClose(call);
    EXPECT_THAT(tool.AwaitEnd(call), Not(HasSubstr("attendant-reason")));
  }
  ExpectGoodCallerIsServed(server);
  while (!testing::Test::HasFailure() && BytesHeld(server) < 4'000'000) {
    ASSERT_FALSE(hostile.HasEnded(calls.front()));
  }
  EXPECT_LE(BytesHeld(server), Metric(server, "attendant_budget_bytes"));
  for (const uint32_t call : calls) {
    EXPECT_THAT(hostile.AwaitEnd(call), HasSubstr("the request's body did not arrive within 2s"));
  }
  AwaitMetric(server, "attendant_open_streams", 0);
  AwaitMetric(server, "attendant_receiving_bytes", 0);
}

// Items that stop half-way until the caller has its share.
TEST(BudgetOfTheServerTest, HalfSentItemsAreChargedAndEndBeyondTheShare) {
  ReadyServer server({"--model=t=synthetic:tiny", "--memory-limit-bytes=250MiB",
                      "--max-streams=200", "--peer-reserve=0"});
  RawCall idle(server.NewChannel(), kStream);
  AwaitMetric(server, "attendant_open_streams", 1);
  RawHttp2 hostile(server.port(), kOtherAddress);
  const std::string half(10'000'000, 'x');
  const uint32_t first = hostile.StartCall(kStream);
  uint32_t last = first;
  hostile.SendMessage(first, 12'000'000, half);
  for (int i = 0; i < 60 && !hostile.HasEnded(last); ++i) {
    EXPECT_LE(BytesHeld(server), Metric(server, "attendant_budget_bytes"));
    last = hostile.StartCall(kStream);
    hostile.SendMessage(last, 12'000'000, half);
  }
  const std::string end = hostile.AwaitEnd(last);
  EXPECT_THAT(end, HasSubstr("peer_share"));
  EXPECT_FALSE(hostile.HasEnded(first));
  ExpectGoodCallerIsServed(server);
  v1::EncodeStreamRequest item;
  item.set_id(7);
  *item.mutable_request()->mutable_hidden_states() = Request(4, false).hidden_states();
  EXPECT_TRUE(idle.Write(item.SerializeAsString()));
  v1::EncodeStreamResponse response;
  EXPECT_TRUE(idle.Read(&response));
  EXPECT_EQ(response.id(), 7u);
  EXPECT_TRUE(response.has_response()) << response.error().message();
}

TEST(BudgetOfTheServerTest, HalfSentBodiesOverAUnixSocketAreChargedUntilTheyEnd) {
  const std::string path = absl::StrCat(testing::TempDir(), "budget_", getpid(), ".sock");
  ReadyServer server({"--model=t=synthetic:tiny", absl::StrCat("--address=unix:", path)});
  RawHttp2 first(0, {.unix_path = path});
  const uint32_t call = first.StartCall(kAttend);
  first.SendMessage(call, 2'000'000, std::string(1'500'000, 'x'));
  {
    RawHttp2 second(0, {.unix_path = path});
    second.SendMessage(second.StartCall(kAttend), 2'000'000, std::string(1'000'000, 'x'));
    while (!testing::Test::HasFailure() && BytesHeld(server) < 2'500'000) {
      ASSERT_FALSE(first.HasEnded(call));
    }
  }
  AwaitMetric(server, "attendant_inflight_requests", 1);
  while (!testing::Test::HasFailure() && BytesHeld(server) >= 2'000'000) {
    ASSERT_FALSE(first.HasEnded(call));
  }
  EXPECT_GE(BytesHeld(server), 1'500'000);
  first.Reset(call);
  AwaitMetric(server, "attendant_inflight_requests", 0);
  AwaitMetric(server, "attendant_receiving_bytes", 0);
}

TEST(BudgetOfTheServerTest, IdleStreamsHoldNoSlot) {
  ReadyServer server(
      {"--model=t=synthetic:tiny", "--max-inflight=4", "--max-streams=20", "--peer-reserve=0"});
  const std::shared_ptr<grpc::Channel> channel = server.NewChannel();
  std::vector<std::unique_ptr<RawCall>> idle;
  for (int i = 0; i < 20; ++i) idle.push_back(std::make_unique<RawCall>(channel, kStream));
  AwaitMetric(server, "attendant_open_streams", 20);
  ExpectGoodCallerIsServed(server);
  RawCall late(channel, kStream);
  EXPECT_EQ(late.Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(late.Trailer("attendant-reason"), "streams");
  EXPECT_NE(late.Trailer("grpc-retry-pushback-ms"), "none");
}

TEST(BudgetOfTheServerTest, WhatNeverFitsIsNotToBeTriedAgain) {
  ReadyServer server(
      {"--model=t=synthetic:tiny", "--memory-limit-bytes=250MiB", "--max-request-tokens=4096"});
  grpc::ClientContext context;
  const grpc::Status status = Attend(server, Request(3500, true), context);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("bytes with its response; the server has "));
  EXPECT_EQ(TrailerOf(context, "grpc-retry-pushback-ms"), "none");
  ExpectGoodCallerIsServed(server);
}

// Starts calls for these callers, as a proxy does, and waits until each has a slot.
void StartForwarded(const ReadyServer& server, RawHttp2& proxy,
                    const std::vector<std::string>& callers) {
  for (const std::string& caller : callers) {
    proxy.StartCall(kAttend, {{"x-forwarded-for", caller}});
  }
  AwaitMetric(server, "attendant_inflight_requests", static_cast<int64_t>(callers.size()));
}

// The callers of a trusted proxy have shares of their own.
TEST(BudgetOfTheServerTest, ATrustedProxyTellsItsCallersApart) {
  ReadyServer server({"--model=t=synthetic:tiny", "--max-inflight=10", "--peer-reserve=20",
                      "--trusted-proxies=127.0.0.2"});
  RawHttp2 proxy(server.port(), kOtherAddress);
  StartForwarded(server, proxy, std::vector<std::string>(8, "10.0.0.1"));
  const uint32_t same = proxy.StartCall(kAttend, {{"x-forwarded-for", "10.0.0.1"}});
  EXPECT_THAT(proxy.AwaitEnd(same), HasSubstr("peer_share"));
  const uint32_t other = proxy.StartCall(kAttend, {{"x-forwarded-for", "10.0.0.2"}});
  AwaitMetric(server, "attendant_inflight_requests", 9);
  EXPECT_FALSE(proxy.HasEnded(other));
}

TEST(BudgetOfTheServerTest, OthersCannotSayForWhomTheyCall) {
  ReadyServer server({"--model=t=synthetic:tiny", "--max-inflight=10", "--peer-reserve=20",
                      "--trusted-proxies=127.0.0.3"});
  RawHttp2 liar(server.port(), kOtherAddress);
  std::vector<std::string> callers;
  for (int i = 1; i <= 8; ++i) callers.push_back(absl::StrCat("10.0.0.", i));
  StartForwarded(server, liar, callers);
  const uint32_t call = liar.StartCall(kAttend, {{"x-forwarded-for", "10.0.0.9"}});
  EXPECT_THAT(liar.AwaitEnd(call), HasSubstr("peer_share"));
  ExpectGoodCallerIsServed(server);
}

// Fair shares: one address alone leaves a reserve, so that another one gets a slot.
TEST(BudgetOfTheServerTest, OneAddressLeavesSlotsToOthers) {
  ReadyServer server({"--model=t=synthetic:tiny", "--max-inflight=10", "--peer-reserve=20"});
  RawHttp2 hostile(server.port(), kOtherAddress);
  for (int i = 0; i < 8; ++i) hostile.StartCall(kAttend);
  AwaitMetric(server, "attendant_inflight_requests", 8);
  const std::string end = hostile.AwaitEnd(hostile.StartCall(kAttend));
  EXPECT_THAT(end, HasSubstr("peer_share"));
  ExpectGoodCallerIsServed(server);
}

// The same in the queue, where a request waits for company; the good caller's makes its batch full.
TEST(BudgetOfTheServerTest, OneAddressLeavesRoomInTheQueueToOthers) {
  ReadyServer server({"--model=t=synthetic:tiny", "--max-queue-requests=2", "--peer-reserve=50",
                      "--max-queue-delay=10s", "--max-batch-tokens=8"});
  RawHttp2 greedy(server.port(), kOtherAddress);
  const std::string message = Request(4, false).SerializeAsString();
  const uint32_t first = greedy.StartCall(kAttend);
  greedy.SendMessage(first, static_cast<uint32_t>(message.size()), message);
  greedy.HalfClose(first);
  AwaitMetric(server, "attendant_queue_requests", 1);
  EXPECT_THAT(greedy.AwaitEnd(greedy.StartCall(kAttend)), HasSubstr("peer_share"));
  EXPECT_FALSE(greedy.HasEnded(first));
  ExpectGoodCallerIsServed(server);
}

}  // namespace budget_test
}  // namespace attendant::server
