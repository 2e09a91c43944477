// Tests of grpc.health.v1.Health.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "grpc/health/v1/health.pb.h"
#include "server/models/health_states.h"
#include "tests/server/support/test_server.h"
#include "tests/support/raw_call.h"
#include "tests/support/raw_http2.h"

namespace attendant::server {
namespace health_test {

using ::testing::HasSubstr;

constexpr char kCheck[] = "/grpc.health.v1.Health/Check";
constexpr char kWatch[] = "/grpc.health.v1.Health/Watch";

// Starts a call about `name`.
std::unique_ptr<RawCall> Ask(const TestServer& server, const char* method,
                             const std::string& name) {
  auto call = std::make_unique<RawCall>(server.channel(), method);
  call->Write(TextField(1, name));
  call->WritesDone();
  return call;
}

// Returns the status that the server sends next; nothing if the call has ended.
std::optional<uint64_t> NextStatus(RawCall& call) {
  const std::optional<std::string> answer = call.Read();
  if (!answer) return std::nullopt;
  return Number(*answer, 1);
}

TEST(HealthTest, CheckTellsTheStateNow) {
  TestServer server;
  EXPECT_EQ(NextStatus(*Ask(server, kCheck, "")), kServing);
  server.service().health().Set("m", true);
  EXPECT_EQ(NextStatus(*Ask(server, kCheck, "m")), kServing);
  server.service().health().Set("m", false);
  EXPECT_EQ(NextStatus(*Ask(server, kCheck, "m")), kNotServing);
  server.service().health().Remove("m");
  const auto call = Ask(server, kCheck, "m");
  EXPECT_EQ(NextStatus(*call), std::nullopt);
  const grpc::Status status = call->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "the server has no service or model with that name");
}

TEST(HealthTest, WatchTellsEachChangeOnce) {
  TestServer server;
  HealthStates& health = server.service().health();
  const auto watch = Ask(server, kWatch, "m");
  EXPECT_EQ(NextStatus(*watch), kServiceUnknown);
  health.Set("other", true);
  health.Set("m", true);
  EXPECT_EQ(NextStatus(*watch), kServing);
  health.Set("m", true);
  health.Remove("m");
  EXPECT_EQ(NextStatus(*watch), kServiceUnknown);
  health.Set("m", true);
  EXPECT_EQ(NextStatus(*watch), kServing);
  health.Shutdown();
  EXPECT_EQ(NextStatus(*watch), kNotServing);
  health.Set("m", true);  // has no effect any more
  EXPECT_EQ(NextStatus(*Ask(server, kCheck, "m")), kNotServing);
  EXPECT_EQ(NextStatus(*Ask(server, kCheck, "")), kNotServing);
}

TEST(HealthTest, AFullOrDrainingServerStillAnswers) {
  TestServer server({.admission = {.slots = {0}}});
  EXPECT_EQ(NextStatus(*Ask(server, kCheck, "")), kServing);
  server.admission().Close();
  EXPECT_EQ(NextStatus(*Ask(server, kCheck, "")), kServing);
}

TEST(HealthTest, RefusesWhatIsNoRequest) {
  TestServer server;
  RawCall malformed(server.channel(), kCheck);
  malformed.Write("\x0a\x7f");
  grpc::Status status = malformed.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "the request: not a valid HealthCheckRequest");

  status = Ask(server, kWatch, std::string(5000, 'x'))->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "the request: expected at most 4096 bytes; got 5003");

  RawCall none(server.channel(), kCheck);
  none.WritesDone();
  status = none.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "the call ended without a request message");

  RawCall unknown(server.channel(), "/grpc.health.v1.Health/List");
  EXPECT_EQ(unknown.Finish().error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST(HealthTest, HalfSentBodiesAreGivenUp) {
  TestServerOptions options;
  options.limits.receive_timeout = absl::Milliseconds(50);
  TestServer server(options);
  RawHttp2 connection(server.port());
  std::vector<uint32_t> calls;
  for (int i = 0; i < 5; ++i) {
    calls.push_back(connection.StartCall(kCheck));
    connection.SendMessage(calls.back(), 100000, std::string(100, 'x'));
  }
  for (const uint32_t call : calls) {
    EXPECT_THAT(connection.AwaitEnd(call), HasSubstr("the request's body did not arrive in time"));
  }
  EXPECT_EQ(NextStatus(*Ask(server, kCheck, "")), kServing);
}

TEST(HealthTest, WhatALargeBodyTakesIsCharged) {
  TestServer server({.admission = {.memory = {400 << 10}}});
  RawHttp2 connection(server.port());
  const uint32_t call = connection.StartCall(kCheck);
  connection.SendMessage(call, 1 << 20, std::string(512 << 10, 'x'));
  EXPECT_THAT(connection.AwaitEnd(call),
              HasSubstr("the unfinished requests of this connection need"));
  server.AwaitNothingReceiving();
}

// A full server of two addresses that keep as many calls as HTTP/2 lets them have.
TEST(HealthTest, HalfSentBodiesOfOthersDoNotDelayAnybody) {
  TestServer server;
  std::vector<std::unique_ptr<RawHttp2>> connections;
  for (int i = 0; i < 12; ++i) {
    connections.push_back(std::make_unique<RawHttp2>(
        server.port(), RawHttp2Options{.source = i % 2 == 0 ? "127.0.0.2" : "127.0.0.3"}));
    for (int call = 0; call < 100; ++call) {
      connections.back()->SendMessage(connections.back()->StartCall(kCheck), 100, "half");
    }
    EXPECT_EQ(NextStatus(*Ask(server, kCheck, "")), kServing);
  }
  EXPECT_THAT(connections.front()->AwaitEnd(1), HasSubstr("the request's body"));
  EXPECT_EQ(NextStatus(*Ask(server, kWatch, "m")), kServiceUnknown);
  v1::ListModelsResponse models;
  grpc::ClientContext call;
  EXPECT_TRUE(server.stub().ListModels(&call, {}, &models).ok());
}

TEST(HealthTest, EachAddressHasItsShareOfTheWatches) {
  TestServer server;
  std::vector<std::unique_ptr<RawHttp2>> connections;
  std::string end;
  // A connection has 128 calls at most.
  for (int i = 0; i < 10; ++i) {
    connections.push_back(
        std::make_unique<RawHttp2>(server.port(), RawHttp2Options{.source = "127.0.0.2"}));
    for (int call = 0; call < 120; ++call) {
      const uint32_t watch = connections.back()->StartCall(kWatch);
      connections.back()->SendMessage(watch, 0, "");
      connections.back()->HalfClose(watch);
      if (i == 9 && call == 119) end = connections.back()->AwaitEnd(watch);
    }
    // Connections are read in any order.
    const int64_t granted = std::min(120 * (i + 1), 768);
    while (server.admission().health_watches().counts().all() < granted) std::this_thread::yield();
  }
  EXPECT_THAT(end, HasSubstr("the client already has its share of the health watches"));
  EXPECT_EQ(NextStatus(*Ask(server, kWatch, "")), kServing);
}

}  // namespace health_test
}  // namespace attendant::server
