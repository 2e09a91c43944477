// Tests of a body of which only the beginning arrives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/server/support/test_server.h"
#include "tests/server/support/wire_tensors.h"
#include "tests/support/raw_http2.h"

namespace attendant::server {
namespace half_sent_test {

using ::testing::HasSubstr;

// Calls the method with a message that announces 10,000 uncompressed bytes but has 100.
std::string TrailersOfHalfAMessage(const TestServer& server, const std::string& method) {
  RawHttp2 connection(server.port());
  const uint32_t call = connection.StartCall("/attendant.v1.EncoderService/" + method);
  connection.SendMessage(call, 10000, std::string(100, 'x'));
  return connection.AwaitEnd(call);
}

TEST(HalfSentTest, AnItemThatStopsEndsItsStream) {
  TestServerOptions options;
  options.limits.stream_idle_timeout = absl::Milliseconds(50);
  TestServer server(options);
  EXPECT_THAT(TrailersOfHalfAMessage(server, "EncodeStream"),
              HasSubstr("the stream's next item did not arrive within 50ms"));
  server.AwaitStreams(0);
}

TEST(HalfSentTest, ABodyThatStopsIsGivenUp) {
  TestServerOptions options;
  options.limits.receive_timeout = absl::Milliseconds(50);
  options.limits.min_receive_rate = int64_t{1} << 30;
  TestServer server(options);
  const std::string trailers = TrailersOfHalfAMessage(server, "Attend");
  EXPECT_THAT(trailers, HasSubstr("grpc-status"));
  EXPECT_THAT(trailers, HasSubstr("the request's body did not arrive within 50ms"));
  server.AwaitInflight(0);
  server.AwaitNothingReceiving();
  server.ExpectMetrics(HasSubstr("code=\"DEADLINE_EXCEEDED\""));
}

TEST(HalfSentTest, WhatHasArrivedIsCharged) {
  TestServer server;
  RawHttp2 connection(server.port());
  std::vector<uint32_t> calls;
  for (int call = 0; call < 3; ++call) {
    calls.push_back(connection.StartCall("/attendant.v1.EncoderService/Attend"));
    connection.SendMessage(calls.back(), 500 << 10, std::string(300 << 10, 'x'));
  }
  server.AwaitReceiving(900 << 10);
  EXPECT_EQ(server.admission().slots().counts().all(), 3);
  for (const uint32_t call : calls) connection.Reset(call);
  server.AwaitInflight(0);
  server.AwaitNothingReceiving();
}

TEST(HalfSentTest, NothingIsChargedForAConnectionThatIsClosed) {
  TestServer server;
  {
    RawHttp2 connection(server.port());
    const uint32_t call = connection.StartCall("/attendant.v1.EncoderService/Attend");
    connection.SendMessage(call, 500 << 10, std::string(300 << 10, 'x'));
    server.AwaitReceiving(300 << 10);
  }
  server.AwaitInflight(0);
  server.AwaitNothingReceiving();
}

TestServerOptions LittleMemory() {
  TestServerOptions options;
  options.admission.memory = {int64_t{400} << 10};
  return options;
}

TEST(HalfSentTest, WhatHasNoRoomIsRefused) {
  TestServer server(LittleMemory());
  for (const char* method : {"Attend", "GetModel", "EncodeStream"}) {
    RawHttp2 connection(server.port());
    const uint32_t call =
        connection.StartCall(std::string("/attendant.v1.EncoderService/") + method);
    connection.SendMessage(call, 500 << 10, std::string(450 << 10, 'x'));
    const std::string trailers = connection.AwaitEnd(call);
    EXPECT_THAT(trailers, HasSubstr("the unfinished requests of this connection need"));
    EXPECT_THAT(trailers, HasSubstr("attendant-reason"));
    EXPECT_THAT(trailers, HasSubstr("memory"));
    EXPECT_THAT(trailers, HasSubstr("grpc-retry-pushback-ms"));
    server.AwaitInflight(0);
    server.AwaitStreams(0);
    server.AwaitNothingReceiving();
  }
}

TEST(HalfSentTest, ABodyThatFitsIsServedAfterOneThatDidNot) {
  TestServer server(LittleMemory());
  RawHttp2 connection(server.port());
  const uint32_t call = connection.StartCall("/attendant.v1.EncoderService/Attend");
  connection.SendMessage(call, 500 << 10, std::string(450 << 10, 'x'));
  connection.AwaitEnd(call);
  server.AwaitNothingReceiving();
  const uint32_t next = connection.StartCall("/attendant.v1.EncoderService/Attend");
  const std::string body =
      AttendOf("tiny", FloatTensor({1, 200, 32}, SomeValues(200 * 32, 1))).SerializeAsString();
  connection.SendMessage(next, static_cast<uint32_t>(body.size()), body);
  server.ExpectMetrics(
      HasSubstr(R"(attendant_requests_total{code="OK",method="Attend",model="tiny"} 1)"));
}

// More of them than are read at the same time before they are looked at.
TEST(HalfSentTest, OthersAreReadOnceTheFirstOnesHaveBeenLookedAt) {
  TestServer server;
  RawHttp2 connection(server.port());
  for (int call = 0; call < 12; ++call) {
    connection.SendMessage(connection.StartCall("/attendant.v1.EncoderService/Attend"), 10000, "x");
  }
  const v1::AttendRequest request = AttendOf("tiny", FloatTensor({1, 1, 32}, SomeValues(32, 1)));
  v1::AttendResponse response;
  EXPECT_TRUE(server.Attend(request, &response).ok());
}

}  // namespace half_sent_test
}  // namespace attendant::server
