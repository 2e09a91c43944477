// Tests of the HTTP port of the real process, most of them of callers who mean it harm.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/server_process.h"
#include "tests/support/tcp_client.h"

namespace attendant::server {
namespace http_port_test {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

double ResidentBytes(const ReadyServer& server) {
  const std::string metrics = server.Get("/metrics");
  const std::string name = "\nprocess_resident_memory_bytes ";
  const size_t at = metrics.find(name);
  EXPECT_NE(at, metrics.npos) << metrics;
  return at == metrics.npos ? 0 : std::atof(metrics.c_str() + at + name.size());
}

// Whether gRPC answers over a new connection.
bool AnswersGrpc(const ReadyServer& server) {
  v1::ListModelsResponse response;
  grpc::ClientContext call;
  call.set_wait_for_ready(true);
  call.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
  return server.NewStub()->ListModels(&call, {}, &response).ok();
}

TEST(HttpPortTest, ListensOnItsOwnAddress) {
  ServerProcess server(
      {"--address=127.0.0.1", "--http-address=127.0.0.2", "--port=0", "--http-port=0"});
  const std::string line = server.AwaitLine("ready: ");
  EXPECT_THAT(line, HasSubstr("gRPC on 127.0.0.1 port "));
  EXPECT_THAT(line, HasSubstr(", HTTP on 127.0.0.2 port "));
  const std::string page = ", page http://127.0.0.2:";
  ASSERT_THAT(line, HasSubstr(page));
  const int port = std::atoi(line.c_str() + line.find(page) + page.size());
  TcpClient client(port, "127.0.0.1", "127.0.0.2");
  ASSERT_TRUE(client.Send("GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"));
  EXPECT_THAT(client.ReceiveAnswer(), EndsWith("\r\n\r\nready\n"));
  EXPECT_FALSE(TcpClient(port).connected());
}

TEST(HttpPortTest, ConnectionsStayOpenUntilTheyAreIdleForTooLong) {
  ReadyServer server({"--http-idle-timeout=1s"});
  TcpClient client(server.http_port());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client.Send("GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"));
    EXPECT_THAT(client.ReceiveAnswer(), EndsWith("\r\n\r\nready\n"));
  }
  EXPECT_EQ(client.ReceiveAll(), "");
}

TEST(HttpPortTest, AHeaderLineWithoutEndIsNotKept) {
  ReadyServer server;
  const double before = ResidentBytes(server);
  const std::string part(1 << 20, 'x');
  TcpClient endless(server.http_port());
  ASSERT_TRUE(endless.Send("GET /healthz HTTP/1.1\r\nX: "));
  int parts = 0;
  while (parts < 64 && endless.Send(part)) ++parts;
  EXPECT_LT(parts, 64) << "all 64 MiB were taken";
  EXPECT_LT(ResidentBytes(server) - before, 4 << 20);
}

TEST(HttpPortTest, TricklersKeepNobodyWaitingAndAreClosed) {
  ReadyServer server;
  std::vector<TcpClient> tricklers;
  for (int i = 0; i < 8; ++i) tricklers.emplace_back(server.http_port());
  for (TcpClient& trickler : tricklers) ASSERT_TRUE(trickler.Send("GET /healthz HTTP/1.1\r\nX: "));
  std::atomic<bool> closed_in_time = true;
  std::thread trickling([&] {
    const absl::Time patience = absl::Now() + absl::Minutes(1);
    while (!tricklers.empty() && closed_in_time) {
      std::erase_if(tricklers, [](TcpClient& trickler) {
        return trickler.AwaitInput(/*milliseconds=*/1) || !trickler.Send("x");
      });
      if (absl::Now() > patience) closed_in_time = false;
    }
  });
  for (int i = 0; i < 20; ++i) EXPECT_THAT(server.Get("/healthz"), StartsWith("HTTP/1.1 200"));
  trickling.join();
  EXPECT_TRUE(closed_in_time);
}

TEST(HttpPortTest, MoreIdleConnectionsThanDescriptorsStopNeitherPort) {
  ReadyServer server({}, {"prlimit", "--nofile=256"});
  {
    std::vector<TcpClient> idle;
    for (int i = 0; i < 600; ++i) {
      idle.emplace_back(server.http_port());
      ASSERT_TRUE(idle.back().connected());
      if (i % 100 == 99) {
        EXPECT_THAT(server.Get("/healthz"), StartsWith("HTTP/1.1 200"));
        EXPECT_TRUE(AnswersGrpc(server));
      }
    }
    // From another address too.
    TcpClient other(server.http_port(), "127.0.0.2");
    ASSERT_TRUE(other.Send("GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"));
    EXPECT_THAT(other.ReceiveAnswer(), EndsWith("\r\n\r\nready\n"));
  }
  EXPECT_THAT(server.Get("/healthz"), StartsWith("HTTP/1.1 200"));
  EXPECT_TRUE(AnswersGrpc(server));
}

}  // namespace http_port_test
}  // namespace attendant::server
