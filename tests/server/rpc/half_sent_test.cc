// Tests of a body of which only the beginning arrives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

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

// Sheds until a stream has been told; what was sent may still be on its way before.
void AwaitShed(TestServer& server) {
  int64_t shed = 0;
  while (shed == 0) shed = server.service().ShedUncharged();
  EXPECT_EQ(shed, 1);
}

TestServerOptions LargeItems() {
  TestServerOptions options;
  options.limits.max_request_bytes = int64_t{8} << 20;
  return options;
}

TEST(HalfSentTest, AnItemThatTakesMoreThanIsChargedEndsItsStream) {
  TestServer server(LargeItems());
  grpc::ClientContext context;
  const auto idle = server.stub().EncodeStream(&context);
  server.AwaitStreams(1);
  EXPECT_EQ(server.service().ShedUncharged(), 0);
  RawHttp2 connection(server.port());
  const uint32_t call = connection.StartCall("/attendant.v1.EncoderService/EncodeStream");
  connection.SendMessage(call, 5 << 20, std::string(3 << 20, 'x'));
  AwaitShed(server);
  const std::string trailers = connection.AwaitEnd(call);
  EXPECT_THAT(trailers, HasSubstr("the stream's next item may take more than it is charged with"));
  EXPECT_THAT(trailers, HasSubstr("attendant-reason"));
  EXPECT_THAT(trailers, HasSubstr("memory"));
  server.AwaitStreams(1);
  EXPECT_EQ(server.service().ShedUncharged(), 0);
  v1::EncodeStreamRequest request;
  request.set_id(7);
  v1::EncodeStreamResponse response;
  EXPECT_TRUE(idle->Write(request));
  EXPECT_TRUE(idle->Read(&response));
  EXPECT_EQ(response.id(), 7);
  EXPECT_TRUE(idle->WritesDone());
  EXPECT_TRUE(idle->Finish().ok());
}

TEST(HalfSentTest, ItsStreamIsCutOffIfItsAnswersDoNotLeave) {
  TestServer server(LargeItems());
  RawHttp2 connection(server.port(), {.initial_window = 0});
  const uint32_t call = connection.StartCall("/attendant.v1.EncoderService/EncodeStream");
  v1::EncodeStreamRequest request;
  request.set_id(7);
  const std::string item = request.SerializeAsString();
  connection.SendMessage(call, static_cast<uint32_t>(item.size()), item);
  connection.SendMessage(call, 5 << 20, std::string(3 << 20, 'x'));
  AwaitShed(server);
  EXPECT_FALSE(connection.HasEnded(call));
  AwaitShed(server);
  connection.AwaitEnd(call);
  server.AwaitStreams(0);
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
