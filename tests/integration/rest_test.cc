// Tests of the Open Inference Protocol over HTTP with the real server.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/server_process.h"
#include "tests/support/tcp_client.h"
#include "tests/support/test_certificates.h"
#include "tests/support/tls_client.h"

namespace attendant::server {
namespace rest_test {

namespace fs = std::filesystem;
using attendant::test_support::HttpsGet;
using attendant::test_support::IssuedCertificate;
using attendant::test_support::TestCa;
using attendant::test_support::TlsClient;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Two rows of the worked example's width, each twice.
std::string Request(int sequences, const std::string& more = "") {
  std::string rows = "1,0,1,0,0,2,0,2";
  for (int i = 1; i < sequences; ++i) rows += ",1,0,1,0,0,2,0,2";
  const std::string body = absl::StrCat(
      "{", more, R"("inputs":[{"name":"hidden_states","datatype":"FP32","shape":[)", sequences,
      ",2,4],\"data\":[", rows, R"(]}],"outputs":[{"name":"context_layer"}]})");
  return absl::StrCat(
      "POST /v2/models/worked-example/infer HTTP/1.1\r\nHost: x\r\nContent-Length: ", body.size(),
      "\r\n\r\n", body);
}

TEST(RestOfTheServerTest, AnswersAndCounts) {
  ReadyServer server;
  const std::string answer = Exchange(server.http_port(), Request(1, R"("id":"x",)"));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(answer, HasSubstr(R"({"id":"x","model_name":"worked-example","model_version":"1",)"));
  EXPECT_THAT(server.Get("/v2/health/ready"), EndsWith("{\"ready\":true}"));
  EXPECT_THAT(server.Get("/v2/models/worked-example"), HasSubstr("hidden_states"));
  server.ExpectMetrics(HasSubstr("method=\"ModelInfer\",model=\"worked-example\"} 1"));
}

TEST(RestOfTheServerTest, CanBeSwitchedOff) {
  ReadyServer server({"--rest=off"});
  EXPECT_THAT(server.Get("/v2/health/live"), EndsWith("\r\n\r\nnot found\n"));
  EXPECT_THAT(Exchange(server.http_port(), Request(1)), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(server.Get("/readyz"), EndsWith("ready\n"));
}

TEST(RestOfTheServerTest, BadSwitchesAreRefused) {
  ServerProcess server({"--rest=maybe"});
  const ServerProcess::End end = server.AwaitEnd();
  EXPECT_EQ(end.code, 2);
  EXPECT_THAT(end.lines,
              ::testing::ElementsAre(HasSubstr("rest: expected one of on, off; got \"maybe\"")));
}

// The body comes when the server already drains: the slot counts from the head.
TEST(RestOfTheServerTest, AcceptedRequestsAreAnsweredOnSigterm) {
  ReadyServer server;
  const std::string request = Request(3);
  TcpClient idle(server.http_port()), client(server.http_port());
  ASSERT_TRUE(idle.Send("GET /readyz HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(idle.ReceiveAnswer(), StartsWith("HTTP/1.1 200"));
  ASSERT_TRUE(client.Send(request.substr(0, request.size() - 10)));
  AwaitMetric(server, "attendant_inflight_requests", 1);
  server.process().Signal(SIGTERM);
  server.process().AwaitLine("draining: 1 requests in flight");
  EXPECT_EQ(idle.ReceiveAll(), "");
  ASSERT_TRUE(client.Send(request.substr(request.size() - 10)));
  const std::string answer = client.ReceiveAll();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(answer, HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_EQ(server.process().AwaitEnd().code, 0);
}

TEST(RestOfTheServerTest, SpeaksTlsWithCertificatesOfCallers) {
  std::string folder = ::testing::TempDir() + "attendant_rest_XXXXXX";
  folder = mkdtemp(folder.data());
  const TestCa ca;
  const IssuedCertificate own = ca.Issue();
  std::ofstream(folder + "/cert") << own.certificate;
  std::ofstream(folder + "/key") << own.key;
  std::ofstream(folder + "/ca") << ca.certificate();
  ReadyServer server({"--tls-cert=" + folder + "/cert", "--tls-key=" + folder + "/key",
                      "--tls-client-ca=" + folder + "/ca"});
  const std::string request = Request(1);
  TlsClient known(server.http_port(), {.ca = ca.certificate(), .own = ca.Issue()});
  EXPECT_THAT(known.Ask(request), StartsWith("HTTP/1.1 200"));
  TlsClient unknown(server.http_port(), {.ca = ca.certificate()});
  const std::string refused = unknown.Ask(request);
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(refused, HasSubstr("the call needs a valid client certificate"));
  EXPECT_THAT(HttpsGet(server.http_port(), "/v2/health/ready", {.ca = ca.certificate()}),
              StartsWith("HTTP/1.1 200"));
  fs::remove_all(folder);
}

}  // namespace rest_test
}  // namespace attendant::server
