// Tests of callers who are slow, silent or too many.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/http/http_server.h"
#include "tests/support/tcp_client.h"

namespace attendant::server {
namespace http_hostile_test {

using ::testing::IsEmpty;
using ::testing::StartsWith;

const std::string kHealthz = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";

std::unique_ptr<HttpServer> Serve(const HttpLimits& limits, std::string metrics = "") {
  HttpHandlers handlers;
  handlers.metrics = [metrics = std::move(metrics)] { return metrics; };
  handlers.ready = [] { return true; };
  return HttpServer::Start("127.0.0.1", 0, handlers, limits).value();
}

// A place for each connection of a test, and a lifetime that no test waits for.
HttpLimits Places(int connections) {
  return {.connections = connections, .brief_timeout = absl::Hours(1)};
}
HttpLimits ShortLives() { return {.connections = 16, .brief_timeout = absl::Milliseconds(50)}; }

std::string AnswerOn(TcpClient& client) {
  return client.Send(kHealthz) ? client.ReceiveAnswer() : "closed";
}

TEST(HttpHostileTest, TheLimitsLeaveSixOfEightDescriptors) {
  EXPECT_EQ(HttpLimitsFor(256).connections, 32 + 32);
  EXPECT_EQ(HttpLimitsFor(1023).connections, 127 + 127);
  EXPECT_EQ(HttpLimitsFor(1 << 20).connections, 256 + 128);
  EXPECT_EQ(HttpLimitsFor(~uint64_t{0}).connections, 256 + 128);  // no limit
  EXPECT_EQ(HttpLimitsFor(20).connections, 4 + 4);
  EXPECT_EQ(HttpLimitsFor(1023).calls, 127);
  EXPECT_EQ(HttpLimitsFor(20).calls, 4);
  EXPECT_EQ(HttpLimitsFor(~uint64_t{0}).calls, 256);
}

TEST(HttpHostileTest, ASilentConnectionIsClosed) {
  const auto server = Serve(ShortLives());
  TcpClient silent(server->port());
  EXPECT_THAT(silent.ReceiveAll(), IsEmpty());
}

TEST(HttpHostileTest, BytesDoNotLengthenALifetime) {
  const auto server = Serve(ShortLives());
  TcpClient trickler(server->port());
  ASSERT_TRUE(trickler.Send("GET /healthz HTTP/1.1\r\nX: "));
  while (!trickler.AwaitInput(/*milliseconds=*/1) && trickler.Send("x")) continue;
  EXPECT_THAT(trickler.ReceiveAll(), IsEmpty());
}

TEST(HttpHostileTest, AnAnswerThatIsNotReadIsCut) {
  const std::string metrics(64 << 20, 'x');
  const auto server = Serve(ShortLives(), metrics);
  TcpClient reader(server->port());
  ASSERT_TRUE(reader.Send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"));
  ASSERT_TRUE(reader.AwaitInput(/*milliseconds=*/60'000));
  TcpClient younger(server->port());
  EXPECT_THAT(younger.ReceiveAll(), IsEmpty());  // so the lifetime of `reader` is over too
  EXPECT_LT(reader.ReceiveAll().size(), metrics.size());
}

TEST(HttpHostileTest, TheOldestOfAnAddressMakesRoomForItsNewest) {
  const auto server = Serve(Places(3));
  TcpClient other(server->port(), "127.0.0.2");
  TcpClient oldest(server->port()), older(server->port()), newest(server->port());
  EXPECT_THAT(oldest.ReceiveAll(), IsEmpty());
  for (TcpClient* open : {&other, &older, &newest}) {
    EXPECT_THAT(AnswerOn(*open), StartsWith("HTTP/1.1 200"));
  }
}

TEST(HttpHostileTest, TheOldestOfAllMakesRoomWhenAllPlacesAreTaken) {
  const auto server = Serve(Places(4));
  TcpClient oldest(server->port(), "127.0.0.2");
  std::vector<TcpClient> others;
  for (const char* from : {"127.0.0.2", "127.0.0.3", "127.0.0.3", "127.0.0.4"}) {
    others.emplace_back(server->port(), from);
  }
  EXPECT_THAT(oldest.ReceiveAll(), IsEmpty());
  for (TcpClient& open : others) EXPECT_THAT(AnswerOn(open), StartsWith("HTTP/1.1 200"));
}

TEST(HttpHostileTest, ManyMoreThanThePlacesDoNotKeepOthersOut) {
  const auto server = Serve(Places(4));
  std::vector<TcpClient> silent;
  for (int i = 0; i < 200; ++i) {
    silent.emplace_back(server->port());
    ASSERT_TRUE(silent.back().connected());
  }
  EXPECT_THAT(Exchange(server->port(), kHealthz), StartsWith("HTTP/1.1 200"));
}

TEST(HttpHostileTest, StopsWhileConnectionsAreOpen) {
  auto server = Serve(Places(16));
  std::vector<TcpClient> silent;
  for (int i = 0; i < 4; ++i) silent.emplace_back(server->port());
  ASSERT_TRUE(silent[0].Send("GET /"));
  server.reset();
  for (TcpClient& client : silent) EXPECT_THAT(client.ReceiveAll(), IsEmpty());
}

}  // namespace http_hostile_test
}  // namespace attendant::server
