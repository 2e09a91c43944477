// Tests of callers that abuse HTTP/2 and gRPC to make a running server work or grow for nothing.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "attendant/v1/encoder_service.grpc.pb.h"
#include "tests/integration/server_process.h"
#include "tests/server/support/wire_tensors.h"
#include "tests/support/http2_frames.h"
#include "tests/support/raw_call.h"
#include "tests/support/raw_http2.h"

namespace attendant::server {
namespace hostile_test {

using enum http2::FrameType;
using ::testing::HasSubstr;

constexpr char kAttend[] = "/attendant.v1.EncoderService/Attend";

// Calls on a connection of its own.
grpc::Status CallOfAGoodCaller(const ReadyServer& server) {
  const auto request = AttendOf("", FloatTensor({1, 4, 32}, std::vector<float>(4 * 32)));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
  v1::AttendResponse response;
  return server.NewStub()->Attend(&context, request, &response);
}

// Starts calls on a connection and takes each back at once, before its body.
void Flood(RawHttp2& connection, int calls) {
  for (int i = 0; i < calls; ++i) {
    const uint32_t call = connection.StartCall(kAttend);
    connection.Reset(call);
    connection.HasEnded(call);  // reads what the server says
  }
}

TEST(HostileCallersTest, AFloodOfResetsLeavesNothing) {
  ReadyServer server({"--model=t=synthetic:tiny"});
  std::vector<std::unique_ptr<RawHttp2>> connections;
  for (int i = 0; i < 4; ++i) {
    connections.push_back(
        std::make_unique<RawHttp2>(server.port(), RawHttp2Options{.source = "127.0.0.2"}));
    Flood(*connections.back(), 1000);
  }
  const grpc::Status status = CallOfAGoodCaller(server);
  EXPECT_TRUE(status.ok()) << status.error_message();
  // One after the other, as the calls that gRPC still has to hand over are worked on meanwhile.
  for (const char* held : {"attendant_inflight_requests", "attendant_receiving_bytes",
                           "attendant_request_bytes", "attendant_answer_bytes"}) {
    AwaitMetric(server, held, 0);
  }
  server.process().Signal(SIGTERM);
  EXPECT_EQ(server.process().AwaitEnd().code, 0);
}

// Repeats frames without reading responses, and expects that the server cuts the connection early.
void ExpectCut(const ReadyServer& server, const std::function<void(RawHttp2&)>& repeated) {
  ASSERT_TRUE(CallOfAGoodCaller(server).ok());
  const int64_t before = ProcessStatus(server, "VmHWM");
  for (int i = 0; i < 2; ++i) {
    RawHttp2 connection(server.port(), RawHttp2Options{.source = "127.0.0.2"});
    for (int j = 0; j < 30'000; ++j) repeated(connection);
    EXPECT_EQ(connection.AwaitEnd(1), "closed");
    EXPECT_TRUE(CallOfAGoodCaller(server).ok());
  }
  EXPECT_LT(ProcessStatus(server, "VmHWM") - before, 50 << 10);
  AwaitMetric(server, "attendant_inflight_requests", 0);
}

TEST(HostileCallersTest, AFloodOfResetsIsCutOff) {
  ReadyServer server({"--model=t=synthetic:tiny"});
  ExpectCut(server, [](RawHttp2& connection) { connection.Reset(connection.StartCall(kAttend)); });
  server.ExpectMetrics(HasSubstr("attendant_refused_connections_total{reason=\"frames\"} 2"));
  server.process().Signal(SIGTERM);
  EXPECT_EQ(server.process().AwaitEnd().code, 0);
}

TEST(HostileCallersTest, AFloodOfSettingsIsCutOff) {
  ReadyServer server({"--model=t=synthetic:tiny"});
  ExpectCut(server, [](RawHttp2& connection) { connection.SendFrame(kSettings, 0, 0, ""); });
}

// gRPC may close the connection before the server cuts it.
TEST(HostileCallersTest, AFloodOfPingsIsCutOff) {
  ReadyServer server({"--model=t=synthetic:tiny"});
  ExpectCut(server, [](RawHttp2& connection) { connection.SendFrame(kPing, 0, 0, "12345678"); });
}

TEST(HostileCallersTest, HeaderFieldsWithoutEndAreCutOff) {
  const std::string fields(1000, '\x82');  // ":method: GET" of the static table
  ReadyServer server({"--model=t=synthetic:tiny"});
  ExpectCut(server, [&](RawHttp2& connection) {
    connection.SendFrame(kHeaders, 0, 1, fields);
    for (int i = 0; i < 12; ++i) connection.SendFrame(kContinuation, 0, 1, fields);
  });
}

TEST(HostileCallersTest, AMessageThatWouldInflateIsRefused) {
  ReadyServer server({"--model=t=synthetic:tiny"});
  ASSERT_TRUE(CallOfAGoodCaller(server).ok());
  const int64_t before = ProcessStatus(server, "VmHWM");
  grpc::ChannelArguments arguments;
  arguments.SetCompressionAlgorithm(GRPC_COMPRESS_GZIP);
  RawCall bomb(
      grpc::CreateCustomChannel(server.address(), grpc::InsecureChannelCredentials(), arguments),
      kAttend);
  bomb.Write(std::string(256 << 20, '\0'));  // 255 KiB of gzip
  const grpc::Status status = bomb.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(status.error_message(), "Compression algorithm 'gzip' is disabled.");
  EXPECT_LT(ProcessStatus(server, "VmHWM") - before, 50 << 10);
  EXPECT_TRUE(CallOfAGoodCaller(server).ok());
}

}  // namespace hostile_test
}  // namespace attendant::server
