// Tests of the bounds of calls over HTTP, and of callers who are slow, gone or too many.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/rest/rest_fixture.h"

namespace attendant::server {
namespace rest_flow_test {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kPath = "/v2/models/tiny/infer";

TestServerOptions GateClosed() {
  TestServerOptions options;
  options.gate_closed = true;
  return options;
}

HttpLimits ShortTimes() {
  HttpLimits limits = RestFixture::Limits();
  limits.receive_timeout = limits.send_timeout = absl::Milliseconds(50);
  limits.min_receive_rate = int64_t{1} << 40;
  return limits;
}

std::unique_ptr<TcpClient> Begin(const RestFixture& rest, const std::string& body) {
  auto client = std::make_unique<TcpClient>(rest.port());
  EXPECT_TRUE(client->Send(PostHead(kPath, body.size()) + body));
  return client;
}

void ExpectNothingHeld(RestFixture& rest) {
  rest.server().AwaitInflight(0);
  EXPECT_EQ(rest.server().admission().memory().counts().all(), 0);
}

TEST(RestFlowTest, ManyCallsWaitWithoutThreads) {
  RestFixture rest(GateClosed());
  std::vector<std::unique_ptr<TcpClient>> callers;
  for (int i = 0; i < 12; ++i) callers.push_back(Begin(rest, IdsBody().dump()));
  rest.server().AwaitInflight(12);
  EXPECT_EQ(rest.Get("/v2/health/ready").status, 200);
  rest.server().gate().Open();
  for (auto& caller : callers) EXPECT_EQ(ParseResult(caller->ReceiveAnswer()).status, 200);
  ExpectNothingHeld(rest);
}

TEST(RestFlowTest, RefusesWhenThereIsNoSlot) {
  TestServerOptions options = GateClosed();
  options.admission.slots = {1};
  RestFixture rest(std::move(options));
  const auto first = Begin(rest, IdsBody().dump());
  rest.server().AwaitInflight(1);
  const RestResult second = rest.Infer("tiny", IdsBody());
  EXPECT_EQ(second.status, 429);
  EXPECT_EQ(second.error(), "all request slots are taken (1 of 1, --max-inflight); retry later");
  EXPECT_EQ(second.header("retry-after"), "1");
  EXPECT_EQ(second.header("attendant-reason"), "slots");
  rest.server().ExpectMetrics(
      HasSubstr("attendant_refusals_total{method=\"ModelInfer\",reason=\"slots\"} 1\n"));
  rest.server().gate().Open();
  EXPECT_EQ(ParseResult(first->ReceiveAnswer()).status, 200);
}

TEST(RestFlowTest, ARefusedCallerIsToldToWaitForTheBacklog) {
  TestServerOptions options = GateClosed();
  options.admission.slots = {1};
  options.models = ModelOf("tiny", TestModels().at("tiny")->encoder->description());
  options.models.at("tiny")->cost->SetRates({.product_flops = 1000});  // minutes
  RestFixture rest(std::move(options));
  const auto first = Begin(rest, IdsBody().dump());
  rest.server().gate().AwaitBlocked();
  const RestResult second = rest.Infer("tiny", IdsBody());
  EXPECT_EQ(second.status, 429);
  EXPECT_EQ(second.header("retry-after"), "10");  // the most
  rest.server().gate().Open();
  EXPECT_EQ(ParseResult(first->ReceiveAnswer()).status, 200);
}

TEST(RestFlowTest, RefusesWhenThePortHasNoPlace) {
  HttpLimits limits = RestFixture::Limits();
  limits.calls = 1;
  RestFixture rest(GateClosed(), limits);
  const auto first = Begin(rest, IdsBody().dump());
  rest.server().AwaitInflight(1);
  const RestResult second = rest.Infer("tiny", IdsBody());
  EXPECT_EQ(second.status, 429);
  EXPECT_EQ(second.error(), "all call slots of the HTTP port are taken (1 of 1); retry later");
  EXPECT_EQ(second.header("attendant-reason"), "slots");
  EXPECT_EQ(second.header("retry-after"), "1");
  rest.server().ExpectMetrics(
      HasSubstr("attendant_refusals_total{method=\"ModelInfer\",reason=\"slots\"} 1\n"));
  rest.server().gate().Open();
  EXPECT_EQ(ParseResult(first->ReceiveAnswer()).status, 200);
}

TEST(RestFlowTest, RefusesWhenThereIsNoMemory) {
  TestServerOptions options;
  options.admission.memory = {100 << 10};
  RestFixture rest(std::move(options));
  Budget::Reservation taken;
  ASSERT_TRUE(rest.server().admission().Charge({"other", 99 << 10, HeldFor::kRequest}, taken).ok());
  const RestResult result = rest.Infer("tiny", IdsBody());
  EXPECT_EQ(result.status, 429);
  EXPECT_EQ(result.header("attendant-reason"), "memory");
  taken.Release();
  ExpectNothingHeld(rest);
}

TEST(RestFlowTest, ALongBodyIsRefusedAtItsHead) {
  RestFixture rest;
  TcpClient client(rest.port());
  ASSERT_TRUE(client.Send(PostHead(kPath, (1 << 20) + 1)));
  const RestResult result = ParseResult(client.ReceiveAnswer());
  EXPECT_EQ(result.status, 413);
  EXPECT_EQ(result.error(),
            "the body: expected at most 1048576 bytes (--max-request-tokens); got 1048577");
  rest.server().ExpectMetrics(
      HasSubstr("attendant_requests_total{code=\"OUT_OF_RANGE\",method=\"ModelInfer\""));
}

TEST(RestFlowTest, AConnectionServesOneCallAfterTheOther) {
  RestFixture rest;
  TcpClient client(rest.port());
  const std::string good = IdsBody().dump(), bad = "{";
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(
        client.Send(PostHead(kPath, good.size()) + good + PostHead(kPath, bad.size()) + bad));
    EXPECT_EQ(ParseResult(client.ReceiveAnswer()).status, 200);
    EXPECT_EQ(ParseResult(client.ReceiveAnswer()).status, 400);
    ASSERT_TRUE(client.Send("GET /v2/health/ready HTTP/1.1\r\n\r\n"));
    EXPECT_EQ(ParseResult(client.ReceiveAnswer()).status, 200);
  }
  ExpectNothingHeld(rest);
}

TEST(RestFlowTest, ABodyThatIsTooLongEndsItsConnection) {
  RestFixture rest;
  TcpClient client(rest.port());
  ASSERT_TRUE(client.Send(PostHead(kPath, (1 << 20) + 1)));
  const RestResult result = ParseResult(client.ReceiveAnswer());
  EXPECT_EQ(result.status, 413);
  EXPECT_EQ(result.header("connection"), "close");
  EXPECT_THAT(client.ReceiveAll(), IsEmpty());
}

TEST(RestFlowTest, TheBodyOfARefusedCallIsReadAndTheConnectionStaysOpen) {
  RestFixture rest;
  TcpClient client(rest.port());
  ASSERT_TRUE(client.Send(PostHead(kPath, 500'000, "Content-Encoding: gzip\r\n")));
  ASSERT_TRUE(client.Send(std::string(500'000, 'x') + "GET /v2/health/ready HTTP/1.1\r\n\r\n"));
  EXPECT_EQ(ParseResult(client.ReceiveAnswer()).status, 415);
  EXPECT_EQ(ParseResult(client.ReceiveAnswer()).status, 200);
}

TEST(RestFlowTest, TheBodyOfARefusedCallHasTheTimeOfABriefRequest) {
  HttpLimits limits = RestFixture::Limits();
  limits.brief_timeout = absl::Milliseconds(50);
  RestFixture rest({}, limits);
  TcpClient client(rest.port());
  ASSERT_TRUE(client.Send(PostHead(kPath, 500'000, "Content-Encoding: gzip\r\n")));
  EXPECT_THAT(client.ReceiveAll(), IsEmpty());
}

TEST(RestFlowTest, ASlowBodyOfALaterCallIsGivenUp) {
  RestFixture rest({}, ShortTimes());
  TcpClient client(rest.port());
  ASSERT_TRUE(client.Send("GET /v2/health/ready HTTP/1.1\r\n\r\n"));
  EXPECT_EQ(ParseResult(client.ReceiveAnswer()).status, 200);
  ASSERT_TRUE(client.Send(PostHead(kPath, 1000) + "{"));
  EXPECT_THAT(client.ReceiveAll(), IsEmpty());
  ExpectNothingHeld(rest);
}

TEST(RestFlowTest, ACompressedBodyIsRefusedAndCounted) {
  RestFixture rest;
  EXPECT_EQ(rest.Post(kPath, "{}", "Content-Encoding: gzip\r\n").status, 415);
  rest.server().ExpectMetrics(
      HasSubstr("attendant_requests_total{code=\"INVALID_ARGUMENT\",method=\"ModelInfer\""));
}

TEST(RestFlowTest, ALengthBeyondAllNumbersIsRefused) {
  RestFixture rest;
  const RestResult result = rest.Call(absl::StrCat(
      "POST ", kPath, " HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n"));
  EXPECT_TRUE(result.status == 413 || result.status == 400) << result.status;
  ExpectNothingHeld(rest);
}

TEST(RestFlowTest, ALongChunkedBodyIsNotKept) {
  RestFixture rest;
  TcpClient client(rest.port());
  ASSERT_TRUE(client.Send(
      absl::StrCat("POST ", kPath, " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")));
  const std::string chunk = absl::StrCat("40000\r\n", std::string(0x40000, ' '), "\r\n");
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(client.Send(chunk));
  rest.server().AwaitNothingReceiving();
  ASSERT_TRUE(client.Send("0\r\n\r\n"));
  const RestResult result = ParseResult(client.ReceiveAnswer());
  EXPECT_EQ(result.status, 413);
  EXPECT_EQ(result.error(),
            "the body: expected at most 1048576 bytes (--max-request-tokens); got more");
  ExpectNothingHeld(rest);
}

// Only what has come is charged, not what was declared.
TEST(RestFlowTest, ABodyIsChargedAsItComes) {
  RestFixture rest;
  TcpClient client(rest.port());
  ASSERT_TRUE(client.Send(PostHead(kPath, 1 << 20) + "{"));
  rest.server().AwaitReceiving(1);
  EXPECT_EQ(rest.server().admission().memory().counts().held_for(HeldFor::kReceiving), 64 << 10);
  ASSERT_TRUE(client.Send(std::string(64 << 10, ' ')));
  rest.server().AwaitReceiving(128 << 10);
  EXPECT_EQ(rest.server().admission().memory().counts().held_for(HeldFor::kReceiving), 128 << 10);
}

TEST(RestFlowTest, ASlowBodyIsGivenUp) {
  RestFixture rest({}, ShortTimes());
  TcpClient client(rest.port());
  ASSERT_TRUE(client.Send(PostHead(kPath, 1000) + "{"));
  EXPECT_THAT(client.ReceiveAll(), IsEmpty());
  ExpectNothingHeld(rest);
  rest.server().ExpectMetrics(
      HasSubstr("attendant_requests_total{code=\"DEADLINE_EXCEEDED\",method=\"ModelInfer\""));
}

TEST(RestFlowTest, ACallerWhoLeavesHisBodyUnfinishedHoldsNothing) {
  RestFixture rest;
  {
    TcpClient client(rest.port());
    ASSERT_TRUE(client.Send(PostHead(kPath, 1000) + "{"));
    rest.server().AwaitInflight(1);
  }
  ExpectNothingHeld(rest);
  rest.server().ExpectMetrics(
      HasSubstr("attendant_requests_total{code=\"CANCELLED\",method=\"ModelInfer\""));
}

TEST(RestFlowTest, ACallerWhoIsGoneIsNotComputed) {
  RestFixture rest(GateClosed());
  const auto first = Begin(rest, IdsBody().dump());
  rest.server().gate().AwaitBlocked();
  auto second = Begin(rest, IdsBody().dump());
  rest.server().AwaitQueued(1);
  second.reset();
  rest.server().AwaitQueued(0);
  rest.server().AwaitInflight(1);
  rest.server().gate().Open();
  EXPECT_EQ(ParseResult(first->ReceiveAnswer()).status, 200);
  ExpectNothingHeld(rest);
  EXPECT_EQ(rest.server().gate().passed(), 1);
}

TEST(RestFlowTest, AnAnswerThatIsNotReadIsCut) {
  TestServerOptions options;
  options.limits.max_answer_bytes = options.limits.max_request_bytes = int64_t{64} << 20;
  options.limits.max_request_tokens = 16384;
  options.admission.memory = {int64_t{1} << 30};
  RestFixture rest(std::move(options), ShortTimes());
  Json body = {{"inputs", Json::array()}};
  body["inputs"].push_back({{"name", "input_ids"}, {"datatype", "UINT8"}, {"shape", {256, 64}}});
  body["inputs"][0]["data"] = std::vector<int>(256 * 64, 5);
  body["outputs"] = Json::parse(
      R"([{"name": "attentions.0"}, {"name": "attentions.1"}, {"name": "last_hidden_state"}])");
  const auto client = Begin(rest, body.dump());
  ASSERT_TRUE(client->AwaitInput(/*milliseconds=*/60'000));
  rest.server().ExpectMetrics(HasSubstr("attendant_unsent_answers_total 1\n"));
  ExpectNothingHeld(rest);
}

TEST(RestFlowTest, DrainingAnswersWhatIsAccepted) {
  RestFixture rest(GateClosed());
  const auto accepted = Begin(rest, IdsBody().dump());
  rest.server().gate().AwaitBlocked();
  rest.server().admission().Close();
  const RestResult late = rest.Infer("tiny", IdsBody());
  EXPECT_EQ(late.status, 503);
  EXPECT_EQ(late.error(), "the server is draining; retry on another server");
  EXPECT_EQ(late.header("attendant-reason"), "draining");
  EXPECT_EQ(late.header("retry-after"), "1");
  rest.server().gate().Open();
  EXPECT_EQ(ParseResult(accepted->ReceiveAnswer()).status, 200);
  EXPECT_EQ(rest.server().admission().AwaitIdle(absl::Minutes(1)), 0);
}

TEST(RestFlowTest, StopsWhileCallsAreUnderWay) {
  RestFixture rest(GateClosed());
  const auto computed = Begin(rest, IdsBody().dump());
  rest.server().gate().AwaitBlocked();
  const auto queued = Begin(rest, IdsBody().dump());
  rest.server().AwaitQueued(1);
  TcpClient receiving(rest.port());
  ASSERT_TRUE(receiving.Send(PostHead(kPath, 1000) + "{"));
  rest.server().AwaitInflight(3);
  rest.StopHttp();
  for (TcpClient* client : {computed.get(), queued.get(), &receiving}) {
    EXPECT_THAT(client->ReceiveAll(), IsEmpty());
  }
  rest.server().gate().Open();
  ExpectNothingHeld(rest);
}

TEST(RestFlowTest, AConnectionThatComputesMakesNoRoom) {
  RestFixture rest(GateClosed());
  const auto computed = Begin(rest, IdsBody().dump());
  rest.server().gate().AwaitBlocked();
  std::vector<std::unique_ptr<TcpClient>> silent;
  for (int i = 0; i < 40; ++i) silent.push_back(std::make_unique<TcpClient>(rest.port()));
  EXPECT_EQ(rest.Get("/v2").status, 200);
  rest.server().gate().Open();
  EXPECT_EQ(ParseResult(computed->ReceiveAnswer()).status, 200);
}

}  // namespace rest_flow_test
}  // namespace attendant::server
