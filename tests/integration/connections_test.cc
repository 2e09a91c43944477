// Tests of how the real server takes connections, and of how it ends them.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "attendant/v1/encoder_service.grpc.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/server_process.h"
#include "tests/server/support/wire_tensors.h"
#include "tests/support/raw_call.h"
#include "tests/support/raw_http2.h"
#include "tests/support/tcp_gate.h"

namespace attendant::server {
namespace connections_test {

using ::testing::HasSubstr;

int Connect(int port) {
  const int caller = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(caller, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return caller;
}

void AwaitMetric(const ReadyServer& server, const std::string& line) {
  const absl::Time patience = absl::Now() + absl::Minutes(1);
  while (server.Get("/metrics").find(absl::StrCat("\n", line, "\n")) == std::string::npos) {
    ASSERT_LT(absl::Now(), patience) << line;
  }
}

grpc::Status ListModels(v1::EncoderService::Stub& stub) {
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
  v1::ListModelsResponse response;
  return stub.ListModels(&context, {}, &response);
}

TEST(ConnectionsTest, CapsAreExactAndTheCountGoesDownAgain) {
  ReadyServer server({"--max-connections=6", "--max-connections-per-address=4"});
  std::vector<int> callers;
  for (int i = 0; i < 7; ++i) callers.push_back(Connect(server.port()));
  AwaitMetric(server, "attendant_refused_connections_total{reason=\"address\"} 3");
  AwaitMetric(server, "attendant_connections 4");
  for (const int caller : callers) close(caller);
  AwaitMetric(server, "attendant_connections 0");
  {
    const auto stub = server.NewStub();
    EXPECT_TRUE(ListModels(*stub).ok());
    AwaitMetric(server, "attendant_connections 1");
  }
  AwaitMetric(server, "attendant_connections 0");
}

TEST(ConnectionsTest, ServesAgainAfterItHadNoDescriptors) {
  ReadyServer server({"--max-connections-per-address=1000"});
  const rlimit few = {40, 40};
  ASSERT_EQ(prlimit(server.process().pid(), RLIMIT_NOFILE, &few, nullptr), 0);
  std::vector<int> callers;
  for (int i = 0; i < 100; ++i) callers.push_back(Connect(server.port()));
  // Each caller is taken or closed, and none waits for ever.
  char byte;
  EXPECT_EQ(recv(callers.back(), &byte, 1, 0), 0);
  for (const int caller : callers) close(caller);
  EXPECT_TRUE(ListModels(*server.NewStub()).ok());
  EXPECT_THAT(server.Get("/metrics"),
              HasSubstr("attendant_refused_connections_total{reason=\"descriptors\"}"));
}

TEST(ConnectionsTest, SaysThatDescriptorsAllowFewConnections) {
  ServerProcess server(
      {"--address=127.0.0.1", "--port=0", "--http-port=0", "--max-connections=1048576"});
  rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max / 4 < 1048576) {
    EXPECT_THAT(server.AwaitLine("lowered --max-connections to"),
                HasSubstr(absl::StrCat(limit.rlim_max / 4, " (limit")));
  }
  server.AwaitLine("ready: ");
}

// Sends SETTINGS frames over a Unix socket until the server ends the connection.
void ExpectFloodCutOff(const std::string& path) {
  const int caller = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(connect(caller, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  std::string bytes = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  int sent = 0;
  for (; sent < 100'000 && send(caller, bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0; ++sent) {
    bytes = std::string("\0\0\0\4\0\0\0\0\0", 9);
  }
  EXPECT_LT(sent, 100'000);
  close(caller);
}

TEST(ConnectionsTest, ServesOverAUnixSocket) {
  const std::string path = absl::StrCat(testing::TempDir(), "attendant_", getpid(), ".sock");
  {
    ServerProcess server({absl::StrCat("--address=unix:", path), "--http-port=0"});
    EXPECT_THAT(server.AwaitLine("ready: "), HasSubstr(absl::StrCat("gRPC on unix:", path, ", ")));
    const auto stub = v1::EncoderService::NewStub(
        grpc::CreateChannel(absl::StrCat("unix:", path), grpc::InsecureChannelCredentials()));
    EXPECT_TRUE(ListModels(*stub).ok());
    ServerProcess second({absl::StrCat("--address=unix:", path), "--http-port=0"});
    const ServerProcess::End end = second.AwaitEnd();
    EXPECT_EQ(end.code, 2);
    EXPECT_THAT(end.lines,
                testing::ElementsAre(absl::StrCat("attendant-server: cannot listen on unix:", path,
                                                  " for gRPC: Address already in use")));
    EXPECT_TRUE(ListModels(*stub).ok());
    ExpectFloodCutOff(path);
    EXPECT_TRUE(ListModels(*stub).ok());
    server.Signal(SIGKILL);
    server.AwaitEnd();
  }
  EXPECT_TRUE(std::filesystem::exists(path));
  ServerProcess successor({absl::StrCat("--address=unix:", path), "--http-port=0"});
  successor.AwaitLine("ready: ");
  successor.Signal(SIGTERM);
  EXPECT_EQ(successor.AwaitEnd().code, 0);
  EXPECT_FALSE(std::filesystem::exists(path));
}

// 32 KiB, which fits into the window that a caller of HTTP/2 grants at first.
grpc::Status EncodeSome(v1::EncoderService::Stub& stub, size_t* answer_bytes) {
  v1::EncodeRequest request;
  *request.mutable_token_ids() = IntegerTensor({8, 32}, std::vector<int64_t>(8 * 32, 7), v1::INT8);
  grpc::ClientContext context;
  v1::EncodeResponse response;
  const grpc::Status status = stub.Encode(&context, request, &response);
  *answer_bytes = response.hidden_states().data().size();
  return status;
}

// Ends the server while an answer of 8 sequences of 32 tokens is in the kernel's buffers, behind a
// gate that carries none.
class StoppedWithAnAnswer {
 public:
  explicit StoppedWithAnAnswer(const std::string& flag)
      : server_({"--model=t=synthetic:tiny", flag}),
        stub_(v1::EncoderService::NewStub(
            grpc::CreateChannel(gate_.address(), grpc::InsecureChannelCredentials()))) {
    EXPECT_TRUE(ListModels(*stub_).ok());
    gate_.StallAnswers();
    answer_ = std::async(std::launch::async, [this] { return EncodeSome(*stub_, &answer_bytes_); });
    AwaitMetric(server_, "attendant_requests_total{code=\"OK\",method=\"Encode\",model=\"t\"} 1");
    server_.process().Signal(SIGTERM);
  }

  ServerProcess& process() { return server_.process(); }
  // Lets the gate carry it, and waits until the call has ended.
  grpc::Status Receive() {
    gate_.Resume();
    return answer_.get();
  }
  size_t answer_bytes() const { return answer_bytes_; }

 private:
  ReadyServer server_;
  TcpGate gate_{server_.port()};
  std::unique_ptr<v1::EncoderService::Stub> stub_;
  size_t answer_bytes_ = 0;
  std::future<grpc::Status> answer_;
};

TEST(ConnectionsTest, AnswersInTheKernelAreNotCutWhenItStops) {
  StoppedWithAnAnswer stopped("--drain-timeout=30s");
  EXPECT_THAT(stopped.process().AwaitLine("with unreceived responses"),
              HasSubstr("draining: 1 connections with"));
  const grpc::Status status = stopped.Receive();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(stopped.answer_bytes(), 8u * 32 * 32 * 4);
  EXPECT_EQ(stopped.process().AwaitEnd().code, 0);
}

TEST(ConnectionsTest, TheDrainTimeoutCutsAnswersThatNobodyReceives) {
  StoppedWithAnAnswer stopped("--drain-timeout=1s");
  stopped.process().AwaitLine("closing 1 connections before their responses are received");
  EXPECT_EQ(stopped.process().AwaitEnd().code, 0);
  (void)stopped.Receive();  // the kernel may still deliver it
}

TEST(ConnectionsTest, OpenReflectionStreamsTakeNoThreads) {
  ReadyServer server;
  EXPECT_TRUE(ListModels(*server.NewStub()).ok());
  const int64_t threads_before = ProcessStatus(server, "Threads");
  std::vector<std::unique_ptr<RawCall>> streams;
  int answered = 0;
  for (int connection = 0; connection < 3; ++connection) {
    const auto channel = server.NewChannel();
    for (int i = 0; i < 100; ++i) {
      streams.push_back(std::make_unique<RawCall>(
          channel, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"));
      streams.back()->Write(TextField(7, ""));  // list_services
      if (streams.back()->Read().has_value()) {
        ++answered;
      } else {
        EXPECT_EQ(streams.back()->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
      }
    }
  }
  EXPECT_EQ(answered, 4);
  EXPECT_GT(threads_before, 0);
  EXPECT_LT(ProcessStatus(server, "Threads"), threads_before + 20);
  streams.clear();
  server.process().Signal(SIGTERM);
  EXPECT_EQ(server.process().AwaitEnd().code, 0);
}

TEST(ConnectionsTest, AnOldConnectionIsAskedToEndAndItsCallsAreAnswered) {
  ReadyServer server({"--max-connection-age=1s"});
  RawHttp2 old(server.port());
  const uint32_t call = old.StartCall("/attendant.v1.EncoderService/Attend");
  AwaitMetric(server, "attendant_inflight_requests 1");
  EXPECT_TRUE(old.AwaitGoAway());
  const std::string message =
      AttendOf("", FloatTensor({1, 3, 4}, std::vector<float>(3 * 4))).SerializeAsString();
  old.SendMessage(call, static_cast<uint32_t>(message.size()), message);
  old.HalfClose(call);
  EXPECT_NE(old.AwaitEnd(call), "closed");
  AwaitMetric(server,
              R"(attendant_requests_total{code="OK",method="Attend",model="worked-example"} 1)");
  EXPECT_TRUE(ListModels(*server.NewStub()).ok());  // over a new connection
}

TEST(ConnectionsTest, NobodyCanConnectOnceItDrains) {
  ReadyServer server({"--drain-timeout=1h"});
  const auto stub = server.NewStub();
  ASSERT_TRUE(ListModels(*stub).ok());
  grpc::ClientContext half_sent;
  const auto stream = stub->EncodeStream(&half_sent);
  server.process().Signal(SIGTERM);
  server.process().AwaitLine("draining: ");
  const int late = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(server.port()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_NE(connect(late, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  close(late);
  half_sent.TryCancel();
  EXPECT_EQ(server.process().AwaitEnd().code, 0);
}

}  // namespace connections_test
}  // namespace attendant::server
