// Tests of calls of the HTTP port from pages of other origins.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/http/http_server.h"
#include "tests/support/tcp_client.h"

namespace attendant::server {
namespace http_cors_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::unique_ptr<HttpServer> Serve(std::vector<std::string> origins) {
  HttpHandlers handlers;
  handlers.metrics = [] { return std::string("attendant_ready 1\n"); };
  handlers.ready = [] { return true; };
  handlers.cors_origins = std::move(origins);
  return HttpServer::Start("127.0.0.1", 0, std::move(handlers)).value();
}

std::string Ask(const HttpServer& server, const std::string& method, const std::string& origin) {
  return Exchange(
      server.port(),
      absl::StrCat(method, " /healthz HTTP/1.1\r\nHost: x\r\n",
                   origin.empty() ? "" : absl::StrCat("Origin: ", origin, "\r\n"),
                   method == "OPTIONS"
                       ? "Access-Control-Request-Method: POST\r\n"
                         "Access-Control-Request-Headers: authorization,content-type\r\n"
                       : "",
                   "\r\n"));
}

const char kAllow[] = "Access-Control-Allow-Origin: ";

TEST(HttpCorsTest, IsOffByDefault) {
  const auto server = Serve({});
  EXPECT_THAT(Ask(*server, "GET", "https://a.example"), Not(HasSubstr(kAllow)));
  EXPECT_THAT(Ask(*server, "OPTIONS", "https://a.example"),
              AllOf(StartsWith("HTTP/1.1 405"), Not(HasSubstr(kAllow))));
}

TEST(HttpCorsTest, AllowsTheOriginsThatAreNamed) {
  const auto server = Serve({"https://a.example", "http://localhost:3000"});
  for (const std::string origin : {"https://a.example", "http://localhost:3000"}) {
    const std::string answer = Ask(*server, "GET", origin);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(answer, HasSubstr(absl::StrCat(kAllow, origin, "\r\n")));
    EXPECT_THAT(answer, HasSubstr("Vary: Origin\r\n"));
    EXPECT_THAT(answer, HasSubstr("Access-Control-Expose-Headers: "));
  }
  for (const std::string origin : {"", "https://b.example", "https://a.example:1"}) {
    EXPECT_THAT(Ask(*server, "GET", origin),
                AllOf(StartsWith("HTTP/1.1 200"), Not(HasSubstr(kAllow))));
    EXPECT_THAT(Ask(*server, "OPTIONS", origin),
                AllOf(StartsWith("HTTP/1.1 405"), Not(HasSubstr(kAllow))));
  }
}

TEST(HttpCorsTest, AnswersPreflights) {
  const auto server = Serve({"*"});
  const std::string answer = Ask(*server, "OPTIONS", "https://any.example");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 204"));
  EXPECT_THAT(answer, HasSubstr(absl::StrCat(kAllow, "https://any.example\r\n")));
  EXPECT_THAT(answer, HasSubstr("Access-Control-Allow-Methods: GET, HEAD, POST\r\n"));
  EXPECT_THAT(answer, HasSubstr("Access-Control-Allow-Headers: authorization,content-type\r\n"));
}

}  // namespace http_cors_test
}  // namespace attendant::server
