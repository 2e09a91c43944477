// Tests of TLS on both ports of the real server.
#include <openssl/ssl.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/commands/run_command_line.h"
#include "tests/integration/server_process.h"
#include "tests/server/support/wire_tensors.h"
#include "tests/support/raw_call.h"
#include "tests/support/tcp_gate.h"
#include "tests/support/test_certificates.h"
#include "tests/support/tls_client.h"

namespace attendant::server {
namespace tls_test {

namespace fs = std::filesystem;
using attendant::test_support::HttpsGet;
using attendant::test_support::IssuedCertificate;
using attendant::test_support::TestCa;
using attendant::test_support::TlsClient;
using attendant::test_support::Validity;
using client::Client;
using client::ClientOptions;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kNoCertificate[] = "the call needs a valid client certificate";

class TlsTest : public ::testing::Test {
 protected:
  TlsTest() {
    std::string folder = ::testing::TempDir() + "attendant_tls_XXXXXX";
    folder_ = mkdtemp(folder.data());
    WritePair(ca_.Issue());
    Write("ca", ca_.certificate());
  }
  ~TlsTest() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return absl::StrCat(folder_, "/", name); }
  // As a rotation does: a reader sees the old or the new file.
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name) + ".new") << text;
    fs::rename(Path(name) + ".new", Path(name));
  }
  void WritePair(const IssuedCertificate& pair) const {
    Write("key", pair.key);
    Write("cert", pair.certificate);
  }

  std::vector<std::string> Flags() const {
    return {absl::StrCat("--tls-cert=", Path("cert")), absl::StrCat("--tls-key=", Path("key"))};
  }
  std::vector<std::string> MutualFlags() const {
    std::vector<std::string> flags = Flags();
    flags.push_back(absl::StrCat("--tls-client-ca=", Path("ca")));
    return flags;
  }

  static ClientOptions Trust(const TestCa& ca, const IssuedCertificate& own = {}) {
    ClientOptions options;
    options.own_connection = true;
    options.retry = false;  // which would hide handshakes that fail
    options.tls = {ca.certificate(), own.certificate, own.key};
    return options;
  }
  // Returns what a new connection of such a client gets.
  static absl::Status Call(const ReadyServer& server, const ClientOptions& options) {
    return Client::Connect(server.address(), options)
        .ListModels({.timeout = absl::Seconds(30)})
        .status();
  }

  const TestCa ca_;
  std::string folder_;
};

// Waits for a line of the metrics, which a server with a client CA shows to callers with a
// certificate.
void AwaitMetric(const ReadyServer& server, const std::string& line, const IssuedCertificate& own) {
  const absl::Time patience = absl::Now() + absl::Minutes(1);
  while (
      HttpsGet(server.http_port(), "/metrics", {.own = own}).find(absl::StrCat("\n", line, "\n")) ==
      std::string::npos) {
    ASSERT_LT(absl::Now(), patience) << line;
    absl::SleepFor(absl::Milliseconds(5));
  }
}

void AwaitReloads(const ReadyServer& server, const std::string& result, int count,
                  const IssuedCertificate& own = {}) {
  AwaitMetric(server,
              absl::StrCat("attendant_reloads_total{result=\"", result,
                           "\",what=\"certificates\"} ", count),
              own);
}

TEST_F(TlsTest, ServesOnlyOverTls) {
  ReadyServer server(Flags());
  EXPECT_TRUE(Call(server, Trust(ca_)).ok());
  EXPECT_EQ(Call(server, {.own_connection = true}).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Call(server, Trust(TestCa())).code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Call(server, Trust(ca_)).ok());
  for (const char* path : {"/healthz", "/readyz", "/metrics"}) {
    EXPECT_THAT(HttpsGet(server.http_port(), path, {ca_.certificate()}),
                StartsWith("HTTP/1.1 200"));
    EXPECT_EQ(HttpsGet(server.http_port(), path, {TestCa().certificate()}), "");
    EXPECT_THAT(server.Get(path), Not(HasSubstr("HTTP/1.1")));
  }
  const std::string metrics = HttpsGet(server.http_port(), "/metrics");
  const std::string expiry = "\nattendant_certificate_expiry_timestamp_seconds ";
  ASSERT_THAT(metrics, HasSubstr(expiry));
  const double expires = std::strtod(&metrics[metrics.find(expiry) + expiry.size()], nullptr);
  const auto now = static_cast<double>(absl::ToUnixSeconds(absl::Now()));
  EXPECT_GT(expires, now);
  EXPECT_LE(expires, now + 3600);
}

TEST_F(TlsTest, AFloodOfFramesIsCutOff) {
  ReadyServer server(Flags());
  std::string flood = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  for (int i = 0; i < 1000; ++i) flood += std::string("\0\0\0\4\0\0\0\0\0", 9);  // SETTINGS
  TlsClient(server.port(), {.ca = ca_.certificate()}).Exchange(flood);
  AwaitMetric(server, "attendant_refused_connections_total{reason=\"frames\"} 1",
              IssuedCertificate{});
  EXPECT_TRUE(Call(server, Trust(ca_)).ok());
}

TEST_F(TlsTest, OldVersionsAreRefused) {
  ReadyServer server(Flags());
  for (const int port : {server.port(), server.http_port()}) {
    const auto works = [port](int version) {
      return TlsClient(port, {.version = version}).connected();
    };
    EXPECT_FALSE(works(TLS1_VERSION));
    EXPECT_FALSE(works(TLS1_1_VERSION));
    EXPECT_TRUE(works(TLS1_2_VERSION));
    EXPECT_TRUE(works(TLS1_3_VERSION));
  }
}

TEST_F(TlsTest, MutualTlsNeedsAGoodCertificateOfTheClient) {
  ReadyServer server(MutualFlags());
  EXPECT_TRUE(Call(server, Trust(ca_, ca_.Issue())).ok());
  EXPECT_EQ(Call(server, Trust(ca_)), absl::UnauthenticatedError(kNoCertificate));
  const TestCa other;
  for (const IssuedCertificate& own : {other.Issue(), ca_.Issue(Validity::kExpired)}) {
    EXPECT_EQ(Call(server, Trust(ca_, own)).code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(Client::Connect(server.address(), Trust(ca_, own)).CheckHealth("").status().code(),
              absl::StatusCode::kUnavailable);
  }
}

// None of these calls sends a body, so each ends at its headers.
TEST_F(TlsTest, EveryMethodButThoseOfHealthNeedsACertificate) {
  ReadyServer server(MutualFlags());
  const auto channel =
      grpc::CreateChannel(server.address(), grpc::SslCredentials({ca_.certificate(), "", ""}));
  for (const char* method :
       {"/attendant.v1.EncoderService/Attend", "/attendant.v1.EncoderService/EncodeStream",
        "/attendant.v1.EncoderService/ListModels", "/attendant.v1.EncoderService/NoSuchMethod",
        "/inference.GRPCInferenceService/ServerLive", "/inference.GRPCInferenceService/ModelInfer",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "/no.such.Service/Method",
        "/grpc.health.v1.Health", "/grpc.health.v1.HealthOfOthers/Check",
        "/x/grpc.health.v1.Health/Check"}) {
    RawCall call(channel, method);
    const grpc::Status status = call.Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << method;
    EXPECT_EQ(status.error_message(), kNoCertificate) << method;
  }
  RawCall crooked(channel, "/grpc.health.v1.Health/../attendant.v1.EncoderService/ListModels");
  EXPECT_EQ(crooked.Finish().error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(*Client::Connect(server.address(), Trust(ca_)).CheckHealth(""),
            client::Health::kServing);
  RawCall watch(channel, "/grpc.health.v1.Health/Watch");
  watch.Write(TextField(1, ""));
  EXPECT_EQ(Number(watch.Read().value_or(""), 1), kServing);
}

TEST_F(TlsTest, TokensDoNotStandForCertificatesNorTheseForTokens) {
  // The SHA-256 of "test".
  Write("tokens", "infer 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n");
  std::vector<std::string> flags = MutualFlags();
  flags.push_back(absl::StrCat("--token-file=", Path("tokens")));
  ReadyServer server(flags);
  ClientOptions options = Trust(ca_);
  options.token = "test";
  EXPECT_EQ(Call(server, options), absl::UnauthenticatedError(kNoCertificate));
  options = Trust(ca_, ca_.Issue());
  EXPECT_EQ(Call(server, options),
            absl::UnauthenticatedError("the call needs a valid bearer token"));
  options.token = "test";
  EXPECT_TRUE(Call(server, options).ok());
  EXPECT_EQ(*Client::Connect(server.address(), Trust(ca_)).CheckHealth(""),
            client::Health::kServing);
}

TEST_F(TlsTest, ProbesNeedNoCertificateAndMetricsDo) {
  ReadyServer server(MutualFlags());
  for (const char* path : {"/healthz", "/readyz"}) {
    EXPECT_THAT(HttpsGet(server.http_port(), path), StartsWith("HTTP/1.1 200"));
  }
  const TestCa other;
  for (const IssuedCertificate& own :
       {IssuedCertificate(), other.Issue(), ca_.Issue(Validity::kExpired)}) {
    const std::string answer = HttpsGet(server.http_port(), "/metrics", {.own = own});
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 403"));
    EXPECT_THAT(answer, EndsWith("\r\n\r\nthe call needs a valid client certificate\n"));
  }
  EXPECT_THAT(HttpsGet(server.http_port(), "/metrics", {.own = ca_.Issue()}),
              StartsWith("HTTP/1.1 200"));
}

TEST_F(TlsTest, NewCertificatesAreUsed) {
  ReadyServer server(MutualFlags());
  const IssuedCertificate own = ca_.Issue();
  EXPECT_TRUE(Call(server, Trust(ca_, own)).ok());
  const TestCa next;
  WritePair(next.Issue());
  AwaitReloads(server, "ok", 1, own);
  EXPECT_TRUE(Call(server, Trust(next, own)).ok());
  EXPECT_EQ(Call(server, Trust(ca_, own)).code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(HttpsGet(server.http_port(), "/healthz", {next.certificate()}),
              StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(HttpsGet(server.http_port(), "/healthz", {ca_.certificate()}), "");
  Write("ca", next.certificate());
  AwaitReloads(server, "ok", 2, next.Issue());
  EXPECT_TRUE(Call(server, Trust(next, next.Issue())).ok());
  EXPECT_EQ(Call(server, Trust(next, own)).code(), absl::StatusCode::kUnavailable);
}

TEST_F(TlsTest, BadFilesChangeNothing) {
  ReadyServer server(Flags());
  Write("key", ca_.Issue().key);
  EXPECT_THAT(server.process().AwaitLine("last good"),
              AllOf(HasSubstr("warning certificates: not reloaded, keeping the last good ones: "),
                    HasSubstr("the key does not match the certificate")));
  AwaitReloads(server, "failed", 1);
  EXPECT_TRUE(Call(server, Trust(ca_)).ok());
  Write("cert", "garbage");
  AwaitReloads(server, "failed", 2);
  EXPECT_TRUE(Call(server, Trust(ca_)).ok());
  fs::remove(Path("cert"));
  AwaitReloads(server, "failed", 3);
  EXPECT_TRUE(Call(server, Trust(ca_)).ok());
  WritePair(ca_.Issue());
  AwaitReloads(server, "ok", 1);
  EXPECT_TRUE(Call(server, Trust(ca_)).ok());
}

TEST_F(TlsTest, NoHandshakeFailsWhileCertificatesRotate) {
  ReadyServer server(Flags());
  std::atomic<bool> stop = false;
  std::atomic<int> calls = 0, failures = 0;
  std::thread caller([&] {
    while (!stop) {
      ++calls;
      if (!Call(server, Trust(ca_)).ok()) ++failures;
      if (HttpsGet(server.http_port(), "/readyz", {ca_.certificate()}).empty()) ++failures;
    }
  });
  for (int rotation = 1; rotation <= 3; ++rotation) {
    WritePair(ca_.Issue());
    AwaitReloads(server, "ok", rotation);
  }
  stop = true;
  caller.join();
  EXPECT_EQ(failures, 0) << "of " << calls;
}

// The gate lets a part of the request pass.
TEST_F(TlsTest, HalfSentBodiesAreChargedUntilTheirConnectionCloses) {
  std::vector<std::string> flags = Flags();
  flags.push_back("--model=t=synthetic:tiny");
  ReadyServer server(flags);
  TcpGate gate(server.port());
  gate.StallRequests(/*after=*/1'000'000);
  const auto stub = v1::EncoderService::NewStub(
      grpc::CreateChannel(gate.address(), grpc::SslCredentials({ca_.certificate(), "", ""})));
  grpc::ClientContext context;
  v1::AttendResponse response;
  const v1::AttendRequest request =
      AttendOf("t", FloatTensor({1, 12'000, 32}, std::vector<float>(12'000 * 32)));
  std::thread caller([&] { (void)stub->Attend(&context, request, &response); });
  const auto receiving = [&] {
    const std::string name = "\nattendant_receiving_bytes ";
    const std::string metrics = HttpsGet(server.http_port(), "/metrics", {});
    const size_t at = metrics.find(name);
    return at == std::string::npos ? -1.0 : std::strtod(&metrics[at + name.size()], nullptr);
  };
  const absl::Time patience = absl::Now() + absl::Seconds(30);
  while (receiving() < 800'000 && absl::Now() < patience) continue;
  EXPECT_GE(receiving(), 800'000);
  gate.Cut();
  caller.join();
  while (receiving() != 0 && absl::Now() < patience) continue;
  EXPECT_EQ(receiving(), 0);
}

TEST_F(TlsTest, TheCommandLineTalksTls) {
  ReadyServer server(MutualFlags());
  const IssuedCertificate own = ca_.Issue();
  Write("own_cert", own.certificate);
  Write("own_key", own.key);
  const std::vector<std::string> health = {"health", "--address", server.address(), "--deadline",
                                           "30s"};
  std::vector<std::string> with_tls = health;
  with_tls.insert(with_tls.end(), {"--tls-ca", Path("ca"), "--tls-cert", Path("own_cert"),
                                   "--tls-key", Path("own_key")});
  EXPECT_EQ(client::RunWith(with_tls).exit_code, 0);
  EXPECT_EQ(client::RunWith(health).exit_code, 3);
  std::vector<std::string> half = health;
  half.insert(half.end(), {"--tls-cert", Path("own_cert")});
  EXPECT_EQ(client::RunWith(half).exit_code, 2);
  std::vector<std::string> missing = health;
  missing.insert(missing.end(), {"--tls-ca", Path("nothing")});
  const client::Outcome outcome = client::RunWith(missing);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr(Path("nothing")));
}

TEST_F(TlsTest, TheLoadTestTalksTls) {
  ReadyServer server(MutualFlags());
  const IssuedCertificate own = ca_.Issue();
  Write("own_cert", own.certificate);
  Write("own_key", own.key);
  const std::vector<std::string> load = {"load-test",  "--address", server.address(),
                                         "--requests", "20",        "--warmup",
                                         "0",          "--lengths", "4"};
  std::vector<std::string> with_tls = load;
  with_tls.insert(with_tls.end(),
                  {"--tls-ca", Path("ca"), "--tls-cert", Path("own_cert"), "--tls-key",
                   Path("own_key"), "--connections", "2", "--metrics-url",
                   absl::StrCat("https://localhost:", server.http_port(), "/metrics")});
  const client::Outcome outcome = client::RunWith(with_tls);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("20 ok, 0 errors"));
  EXPECT_EQ(client::RunWith(load).exit_code, 3);
}

class BadTlsStartTest : public TlsTest {
 protected:
  static std::string Start(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"--address=127.0.0.1", "--port=0", "--http-port=0"});
    const ServerProcess::End end = ServerProcess(flags).AwaitEnd();
    EXPECT_EQ(end.code, 2);
    return end.lines.size() == 1 ? end.lines[0] : "";
  }
};

TEST_F(BadTlsStartTest, SaysWhatIsWrong) {
  EXPECT_EQ(Start({absl::StrCat("--tls-cert=", Path("cert"))}),
            "attendant-server: --tls-cert, --tls-key: TLS requires both");
  EXPECT_EQ(Start({absl::StrCat("--tls-client-ca=", Path("ca"))}),
            "attendant-server: --tls-cert, --tls-key: TLS requires both");
  Write("cert", "garbage");
  EXPECT_EQ(Start(Flags()),
            "attendant-server: --tls-cert: expected certificates in PEM, the server's first");
  fs::remove(Path("cert"));
  EXPECT_EQ(Start(Flags()), absl::StrCat("attendant-server: ", Path("cert"),
                                         ": cannot be read: No such file or directory"));
}

}  // namespace tls_test
}  // namespace attendant::server
