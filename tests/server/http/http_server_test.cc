#include "server/http/http_server.h"

#include <atomic>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tcp_client.h"

namespace attendant::server {
namespace http_server_test {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class HttpServerTest : public testing::Test {
 protected:
  HttpServerTest() : server_(HttpServer::Start("127.0.0.1", 0, Handlers()).value()) {}

  HttpHandlers Handlers() {
    HttpHandlers handlers;
    handlers.metrics = [] { return std::string("attendant_ready 1\n"); };
    handlers.ready = [this] { return ready_.load(); };
    return handlers;
  }

  std::string Get(const std::string& path) const {
    return Exchange(server_->port(), absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: x\r\n\r\n"));
  }

  std::atomic<bool> ready_ = false;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, HealthzIsAlive) {
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Get("/healthz"), EndsWith("\r\n\r\nalive\n"));
}

TEST_F(HttpServerTest, ReadyzFollowsTheServer) {
  EXPECT_THAT(Get("/readyz"), StartsWith("HTTP/1.1 503"));
  ready_ = true;
  EXPECT_THAT(Get("/readyz"), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, MetricsArePrometheusText) {
  const std::string answer = Get("/metrics");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  EXPECT_THAT(answer, EndsWith("attendant_ready 1\n"));
}

TEST_F(HttpServerTest, AnythingElseIsNotFound) {
  EXPECT_THAT(Get("/"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Get("/../etc/passwd"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Get("/metrics/x"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Get("//healthz/"), StartsWith("HTTP/1.1 200"));
  for (const char* absolute : {"http://x/healthz", "http://x//healthz/", "https://x:1/healthz"}) {
    EXPECT_THAT(Get(absolute), StartsWith("HTTP/1.1 200")) << absolute;
  }
  for (const char* other : {"ftp://x/healthz", "x://y/healthz", "/http://x/healthz", "http://x"}) {
    EXPECT_THAT(Get(other), StartsWith("HTTP/1.1 404")) << other;
  }
}

TEST_F(HttpServerTest, RefusesOtherMethodsAndBodies) {
  EXPECT_THAT(
      Exchange(server_->port(), "POST /metrics HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n"),
      StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(Exchange(server_->port(), "DELETE /metrics HTTP/1.1\r\n\r\n"),
              StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(Exchange(server_->port(), "GET /metrics HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n"),
              StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(
      Exchange(server_->port(), "GET /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"),
      StartsWith("HTTP/1.1 413"));
}

TEST_F(HttpServerTest, ARefusalSaysWhatWouldBeRight) {
  const std::string method = Exchange(server_->port(), "PUT /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(method, HasSubstr("\r\nAllow: GET, HEAD\r\n"));
  EXPECT_THAT(method, EndsWith("\r\n\r\nexpected the method GET, HEAD\n"));
  const std::string body =
      Exchange(server_->port(), "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n");
  EXPECT_THAT(body, EndsWith("\r\n\r\nexpected a request without a body\n"));
  EXPECT_THAT(Get("/nothing"), EndsWith("\r\n\r\nnot found\n"));
}

TEST_F(HttpServerTest, ABodyIsRefusedBeforeItIsSent) {
  EXPECT_THAT(Exchange(server_->port(),
                       "GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n"
                       "Expect: 100-continue\r\n\r\n"),
              StartsWith("HTTP/1.1 413"));
}

TEST_F(HttpServerTest, ABodyOfNoBytesIsNone) {
  EXPECT_THAT(
      Exchange(server_->port(), "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"),
      StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, RefusesWhatIsNotHttp) {
  for (const std::string request :
       {"GET /healthz\r\n\r\n", "GET /healthz HTTP/1.1\r\nContent-Length: many\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nContent-Length: -1\r\n\r\n"}) {
    EXPECT_THAT(Exchange(server_->port(), request), StartsWith("HTTP/1.1 400")) << request;
  }
  EXPECT_THAT(Exchange(server_->port(), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
              StartsWith("HTTP/1.1 505"));
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, RefusesBodiesOfUnclearLength) {
  for (const std::string lengths :
       {"Content-Length: 0\r\nContent-Length: 36", "Content-Length: 36\r\nContent-Length: 0",
        "Content-Length: 4\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 0", "Transfer-Encoding: identity",
        "Transfer-Encoding: xchunked\r\nContent-Length: 0",
        "Transfer-Encoding:", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity"}) {
    const std::string answer =
        Exchange(server_->port(), "POST /healthz HTTP/1.1\r\nHost: x\r\n" + lengths +
                                      "\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 400")) << lengths;
    EXPECT_THAT(answer, HasSubstr("\r\nConnection: close\r\n")) << lengths;
    EXPECT_THAT(answer, EndsWith("\r\n\r\nexpected one Content-Length, or Transfer-Encoding: "
                                 "chunked\n"))
        << lengths;
  }
}

TEST_F(HttpServerTest, HeadGetsTheHeadOfTheAnswer) {
  const std::string answer = Exchange(server_->port(), "HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(answer, HasSubstr("\r\nContent-Length: 18\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST_F(HttpServerTest, TakesOldRequestsQueriesAndNoHost) {
  EXPECT_THAT(Exchange(server_->port(), "GET /healthz HTTP/1.0\r\n\r\n"),
              StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Exchange(server_->port(), "GET /healthz HTTP/1.1\r\n\r\n"),
              StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Get("/healthz?verbose=1"), StartsWith("HTTP/1.1 200"));
}

TEST(HttpServerHandlersTest, AHandlerThatThrowsClosesItsConnectionAlone) {
  HttpHandlers handlers;
  handlers.metrics = []() -> std::string { throw std::bad_alloc(); };
  handlers.ready = [] { return true; };
  const auto server = HttpServer::Start("127.0.0.1", 0, handlers).value();
  EXPECT_EQ(Exchange(server->port(), "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), "");
  EXPECT_THAT(Exchange(server->port(), "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"),
              StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, RefusesLongLinesAndServesOn) {
  EXPECT_THAT(Get("/" + std::string(10000, 'x')), StartsWith("HTTP/1.1 414"));
  const std::string answer =
      Exchange(server_->port(),
               absl::StrCat("GET /healthz HTTP/1.1\r\nX: ", std::string(10000, 'x'), "\r\n\r\n"));
  EXPECT_THAT(answer, testing::Not(HasSubstr("alive")));
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, ServesManyCallersAtOnce) {
  std::vector<std::thread> callers;
  std::atomic<int> answered = 0;
  for (int i = 0; i < 16; ++i) {
    callers.emplace_back([&] {
      if (Get("/metrics").find("attendant_ready 1") != std::string::npos) ++answered;
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(answered, 16);
}

TEST_F(HttpServerTest, ATakenPortIsAnError) {
  const absl::StatusOr<std::unique_ptr<HttpServer>> second =
      HttpServer::Start("127.0.0.1", server_->port(), Handlers());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(second.status().message(),
            absl::StrCat("cannot listen on 127.0.0.1 port ", server_->port(),
                         " for HTTP: Address already in use"));
}

TEST_F(HttpServerTest, AnAddressOfAnotherMachineIsAnError) {
  for (const std::string address : {"192.0.2.1", "no such name"}) {
    const absl::Status status = HttpServer::Start(address, 0, Handlers()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(status.message()),
                StartsWith("cannot listen on " + address + " port 0 for HTTP: "));
  }
}

TEST_F(HttpServerTest, StopsListeningWhenDestroyed) {
  const int port = server_->port();
  server_.reset();
  EXPECT_THAT(Exchange(port, "GET /healthz HTTP/1.1\r\n\r\n"), IsEmpty());
}

}  // namespace http_server_test
}  // namespace attendant::server
