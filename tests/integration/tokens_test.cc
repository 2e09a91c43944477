// Tests of bearer tokens on both ports of the real server.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/commands/run_command_line.h"
#include "tests/integration/server_process.h"
#include "tests/support/raw_call.h"
#include "tests/support/raw_http2.h"
#include "tests/support/tcp_client.h"
#include "tests/support/test_certificates.h"

namespace attendant::server {
namespace tokens_test {

namespace fs = std::filesystem;
using client::Client;
using client::ClientOptions;
using ::testing::Contains;
using ::testing::Each;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// The SHA-256 of "test", "alpha" and "other".
constexpr char kTest[] = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
constexpr char kAlpha[] = "8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8";
constexpr char kOther[] = "d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa";

constexpr char kAttend[] = "/attendant.v1.EncoderService/Attend";

class TokensOfTheServerTest : public ::testing::Test {
 protected:
  TokensOfTheServerTest() {
    std::string folder = ::testing::TempDir() + "attendant_tokens_XXXXXX";
    folder_ = mkdtemp(folder.data());
    Write("tokens", absl::StrCat("infer ", kTest, "\nmetrics ", kAlpha, "\n"));
  }
  ~TokensOfTheServerTest() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return absl::StrCat(folder_, "/", name); }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name) + ".new") << text;
    fs::rename(Path(name) + ".new", Path(name));
  }
  std::string Flag() const { return absl::StrCat("--token-file=", Path("tokens")); }

  static absl::Status Call(const ReadyServer& server, const std::string& token) {
    ClientOptions options;
    options.token = token;
    return Client::Connect(server.address(), options).ListModels().status();
  }

  std::string folder_;
};

void AwaitMetric(const ReadyServer& server, const std::string& line) {
  const absl::Time patience = absl::Now() + absl::Minutes(1);
  while (server.Get("/metrics", "alpha").find(absl::StrCat("\n", line, "\n")) ==
         std::string::npos) {
    ASSERT_LT(absl::Now(), patience) << line;
    absl::SleepFor(absl::Milliseconds(5));
  }
}

// The files of the page hold nothing that would need one; what it asks for does.
TEST_F(TokensOfTheServerTest, ThePageNeedsNone) {
  ReadyServer server({Flag()});
  EXPECT_THAT(server.Get("/"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(server.Get("/page/facts.json"), EndsWith(R"({"rest":true,"tokens":true})"));
  EXPECT_THAT(server.Get("/metrics"), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(server.Get("/v2"), StartsWith("HTTP/1.1 401"));
}

TEST_F(TokensOfTheServerTest, CallsNeedATokenOfTheirScope) {
  ReadyServer server({Flag()});
  EXPECT_TRUE(Call(server, "test").ok());
  for (const char* token : {"", "wrong", kTest}) {
    EXPECT_EQ(Call(server, token),
              absl::UnauthenticatedError("the call needs a valid bearer token"));
  }
  EXPECT_EQ(Call(server, "alpha"),
            absl::PermissionDeniedError("the bearer token lacks the scope infer"));
}

// None of these calls sends a body, so each ends at its headers.
TEST_F(TokensOfTheServerTest, EveryMethodIsRefusedAtItsHeaders) {
  ReadyServer server({Flag()});
  const auto channel = server.NewChannel();
  for (const char* method :
       {"Attend", "Encode", "EncodeStream", "PutMemory", "DropMemory", "ListModels", "GetModel",
        "GetTokenizer", "Tokenize", "NoSuchMethod"}) {
    RawCall call(channel, absl::StrCat("/attendant.v1.EncoderService/", method));
    EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED) << method;
  }
  RawCall infer(channel, "/inference.GRPCInferenceService/ModelInfer");
  EXPECT_EQ(infer.Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  RawCall reflection(channel, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
  EXPECT_EQ(reflection.Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(server.Get("/metrics", "alpha"), HasSubstr("attendant_inflight_requests 0\n"));
}

TEST_F(TokensOfTheServerTest, HealthNeedsNone) {
  ReadyServer server({Flag()});
  EXPECT_EQ(*Client::Connect(server.address()).CheckHealth(""), client::Health::kServing);
  RawCall watch(server.NewChannel(), "/grpc.health.v1.Health/Watch");
  watch.Write(TextField(1, ""));
  watch.WritesDone();
  EXPECT_EQ(Number(watch.Read().value_or(""), 1), kServing);
}

TEST_F(TokensOfTheServerTest, MetricsNeedATokenOfTheirScope) {
  ReadyServer server({Flag()});
  EXPECT_THAT(server.Get("/metrics", "alpha"), StartsWith("HTTP/1.1 200"));
  for (const char* token : {"", "wrong", kAlpha}) {
    const std::string answer = server.Get("/metrics", token);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 401"));
    EXPECT_THAT(answer, HasSubstr("\r\nWWW-Authenticate: Bearer\r\n"));
    EXPECT_THAT(answer, EndsWith("\r\n\r\nthe call needs a valid bearer token\n"));
  }
  const std::string answer = server.Get("/metrics", "test");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nthe bearer token lacks the scope metrics\n"));
  EXPECT_FALSE(Call(server, "wrong").ok());
  AwaitMetric(server,
              R"(attendant_token_refusals_total{code="UNAUTHENTICATED",scope="metrics"} 3)");
  AwaitMetric(server,
              R"(attendant_token_refusals_total{code="PERMISSION_DENIED",scope="metrics"} 1)");
  AwaitMetric(server, R"(attendant_token_refusals_total{code="UNAUTHENTICATED",scope="infer"} 1)");
}

TEST_F(TokensOfTheServerTest, ProbesNeedNone) {
  ReadyServer server({Flag()});
  EXPECT_THAT(server.Get("/healthz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(server.Get("/readyz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(server.Get("/nothing"), StartsWith("HTTP/1.1 404"));
}

TEST_F(TokensOfTheServerTest, TheFileIsReadAgain) {
  ReadyServer server({Flag()});
  Write("tokens", absl::StrCat("infer,metrics ", kAlpha, "\n"));
  AwaitMetric(server, "attendant_reloads_total{result=\"ok\",what=\"tokens\"} 1");
  EXPECT_TRUE(Call(server, "alpha").ok());
  EXPECT_EQ(Call(server, "test").code(), absl::StatusCode::kUnauthenticated);
  Write("tokens", "infer my-secret\n");
  AwaitMetric(server, "attendant_reloads_total{result=\"failed\",what=\"tokens\"} 1");
  EXPECT_TRUE(Call(server, "alpha").ok());
}

TEST_F(TokensOfTheServerTest, NoTokenIsLogged) {
  ReadyServer server({Flag(), "--log-level=trace"});
  EXPECT_TRUE(Call(server, "test").ok());
  EXPECT_FALSE(Call(server, "my-secret").ok());
  Write("tokens", "infer my-secret\n");
  server.process().AwaitLine(
      "tokens: not reloaded, keeping the last good ones: --token-file: line 1");
  server.process().Signal(SIGTERM);
  const ServerProcess::End end = server.process().AwaitEnd();
  EXPECT_THAT(end.lines, Contains(HasSubstr("stopped")));
  for (const char* text : {"my-secret", "Bearer", "9f86d0"}) {
    EXPECT_THAT(end.lines, Each(Not(HasSubstr(text))));
  }
}

// Returns the answer to a request of two rows to the worked example, over REST.
std::string Infer(const ReadyServer& server, const std::string& token) {
  const std::string body =
      R"({"inputs":[{"name":"hidden_states","datatype":"FP32","shape":[1,2,4],)"
      R"("data":[1,0,1,0,0,2,0,2]}],"outputs":[{"name":"context_layer"}]})";
  return Exchange(server.http_port(),
                  absl::StrCat("POST /v2/models/worked-example/infer HTTP/1.1\r\nHost: x\r\n"
                               "Authorization: Bearer ",
                               token, "\r\nContent-Length: ", body.size(), "\r\n\r\n", body));
}

// Fair shares: a token is a caller, so that many addresses do not make its share larger, and who
// calls from the same address with another one has a share of his own.
TEST_F(TokensOfTheServerTest, EachTokenHasAShareOfItsOwn) {
  Write("tokens", absl::StrCat("infer ", kTest, "\ninfer ", kOther, "\nmetrics ", kAlpha, "\n"));
  ReadyServer server({Flag(), "--max-inflight=10", "--peer-reserve=20"});
  const std::map<std::string, std::string> test = {{"authorization", "Bearer test"}};
  const std::map<std::string, std::string> other = {{"authorization", "Bearer other"}};
  RawHttp2 here(server.port()), there(server.port(), {.source = "127.0.0.2"});
  for (int i = 0; i < 4; ++i) {
    here.StartCall(kAttend, test);
    there.StartCall(kAttend, test);
  }
  AwaitMetric(server, "attendant_inflight_requests 8");
  for (RawHttp2* connection : {&here, &there}) {
    const std::string end = connection->AwaitEnd(connection->StartCall(kAttend, test));
    EXPECT_THAT(end, HasSubstr("the client already has its share of the server's slots"));
    EXPECT_THAT(end, HasSubstr("peer_share"));
  }
  const std::string refused = Infer(server, "test");
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 429"));
  EXPECT_THAT(refused, HasSubstr("the client already has its share of the server's slots"));
  EXPECT_THAT(Infer(server, "other"), StartsWith("HTTP/1.1 200"));
  AwaitMetric(server, "attendant_inflight_requests 8");
  here.StartCall(kAttend, other);
  AwaitMetric(server, "attendant_inflight_requests 9");
}

TEST_F(TokensOfTheServerTest, StreamsAndTlsSendTokensToo) {
  const attendant::test_support::TestCa ca;
  const attendant::test_support::IssuedCertificate pair = ca.Issue();
  Write("cert", pair.certificate);
  Write("key", pair.key);
  ReadyServer server({Flag(), "--model=t=synthetic:tiny", absl::StrCat("--tls-cert=", Path("cert")),
                      absl::StrCat("--tls-key=", Path("key"))});
  ClientOptions options;
  options.tls = {.ca = ca.certificate(), .certificate = "", .key = ""};
  options.token = "test";
  const auto stream = Client::Connect(server.address(), options).OpenEncodeStream();
  client::EncodeRequest request;
  request.token_ids = client::Int64Tensor({1, 2}, {5, 1});
  ASSERT_TRUE(stream->Write(1, std::move(request)));
  stream->WritesDone();
  const auto answer = stream->Read();
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(answer->result.ok()) << answer->result.status();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(TokensOfTheServerTest, TheCommandLineSendsATokenOfAFile) {
  ReadyServer server({Flag()});
  Write("token", "test\n");
  const std::vector<std::string> models = {"models", "--address", server.address()};
  std::vector<std::string> with_token = models;
  with_token.insert(with_token.end(), {"--token-file", Path("token")});
  EXPECT_EQ(client::RunWith(with_token).exit_code, 0);
  EXPECT_EQ(client::RunWith(models).exit_code, 1);
  Write("token", "two words");
  const client::Outcome outcome = client::RunWith(with_token);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("expected one token of printable characters"));
}

TEST_F(TokensOfTheServerTest, TheLoadTestSendsTokensWithCallsAndForMetrics) {
  ReadyServer server({Flag()});
  Write("token", "test\n");
  Write("metrics_token", "alpha\n");
  const std::vector<std::string> load = {"load-test",  "--address", server.address(),
                                         "--requests", "20",        "--warmup",
                                         "0",          "--lengths", "4"};
  std::vector<std::string> with_token = load;
  with_token.insert(with_token.end(),
                    {"--token-file", Path("token"), "--metrics-url",
                     absl::StrCat("http://127.0.0.1:", server.http_port(), "/metrics")});
  const client::Outcome refused = client::RunWith(with_token);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("/metrics: HTTP 401"));
  with_token.insert(with_token.end(), {"--metrics-token-file", Path("metrics_token")});
  const client::Outcome outcome = client::RunWith(with_token);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("20 ok, 0 errors"));
  EXPECT_EQ(client::RunWith(load).exit_code, 1);
}

TEST_F(TokensOfTheServerTest, ABadFileIsABadStart) {
  Write("tokens", "my-secret\n");
  const ServerProcess::End end =
      ServerProcess({"--address=127.0.0.1", "--port=0", "--http-port=0", Flag()}).AwaitEnd();
  EXPECT_EQ(end.code, 2);
  EXPECT_THAT(end.lines, ::testing::ElementsAre(
                             ::testing::StartsWith("attendant-server: --token-file: line 1: ")));
}

TEST_F(TokensOfTheServerTest, WarnsOfTokensWithoutTls) {
  ServerProcess server({"--address=127.0.0.1", "--port=0", "--http-port=0", Flag()});
  server.AwaitLine("warning --token-file without --tls-cert: tokens are sent unencrypted");
  server.AwaitLine("ready: ");
}

}  // namespace tokens_test
}  // namespace attendant::server
