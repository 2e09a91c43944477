// Tests of a body of which only the beginning arrives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/server/support/test_server.h"
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

}  // namespace
}  // namespace attendant::server
