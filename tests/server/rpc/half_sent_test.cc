// Tests of a body of which only the beginning arrives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/server/support/test_server.h"
#include "tests/server/support/wire_tensors.h"
#include "tests/support/raw_http2.h"

namespace attendant::server {
namespace {

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

// The permit of each begins at 64 KiB; what has come is seen at the first look.
TEST(HalfSentTest, WhatHasArrivedIsCharged) {
  TestServer server;
  RawHttp2 connection(server.port());
  for (int call = 0; call < 3; ++call) {
    const uint32_t stream = connection.StartCall("/attendant.v1.EncoderService/Attend");
    connection.SendMessage(stream, 500 << 10, std::string(300 << 10, 'x'));
  }
  server.AwaitReceiving(900 << 10);
  EXPECT_EQ(server.admission().slots().counts().all(), 3);
}

TEST(HalfSentTest, WhatHasNoRoomIsRefused) {
  TestServerOptions options;
  options.admission.memory = {int64_t{400} << 10};
  TestServer server(options);
  RawHttp2 connection(server.port());
  const uint32_t call = connection.StartCall("/attendant.v1.EncoderService/Attend");
  connection.SendMessage(call, 500 << 10, std::string(450 << 10, 'x'));
  EXPECT_THAT(connection.AwaitEnd(call), HasSubstr("grpc-status"));
  server.AwaitInflight(0);
  server.AwaitNothingReceiving();
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

}  // namespace
}  // namespace attendant::server
