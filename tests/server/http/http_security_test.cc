// Tests of TLS and tokens on the HTTP port.
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/http/http_server.h"
#include "tests/support/tcp_client.h"
#include "tests/support/test_certificates.h"
#include "tests/support/tls_client.h"

namespace attendant::server {
namespace http_security_test {

namespace fs = std::filesystem;
using attendant::test_support::HttpsGet;
using attendant::test_support::IssuedCertificate;
using attendant::test_support::TestCa;
using attendant::test_support::TlsClient;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class HttpSecurityTest : public ::testing::Test {
 protected:
  HttpSecurityTest() {
    std::string folder = ::testing::TempDir() + "attendant_http_XXXXXX";
    folder_ = mkdtemp(folder.data());
    Write(ca_.Issue());
    certificates_ =
        Reloaded<Certificates>::Load({Path("cert"), Path("key")}, CheckCertificates).value();
    server_ = Serve({certificates_.get(), nullptr}).value();
  }
  ~HttpSecurityTest() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return absl::StrCat(folder_, "/", name); }
  void Write(const IssuedCertificate& pair) const {
    std::ofstream(Path("cert")) << pair.certificate;
    std::ofstream(Path("key")) << pair.key;
  }
  static absl::StatusOr<std::unique_ptr<HttpServer>> Serve(const ServerSecrets& secrets) {
    HttpHandlers handlers;
    handlers.metrics = [] { return std::string("attendant_ready 1\n"); };
    handlers.ready = [] { return true; };
    return HttpServer::Start("127.0.0.1", 0, std::move(handlers),
                             {.connections = 8, .brief_timeout = absl::Hours(1)}, secrets);
  }

  const TestCa ca_;
  std::string folder_;
  std::unique_ptr<Reloaded<Certificates>> certificates_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpSecurityTest, ConnectionsOutliveTheirCertificates) {
  TlsClient first(server_->port(), {ca_.certificate()});
  ASSERT_TRUE(first.connected());
  const TestCa next;
  Write(next.Issue());
  ASSERT_TRUE(certificates_->Reload().value());
  TlsClient second(server_->port(), {next.certificate()});
  ASSERT_TRUE(second.connected());
  for (TlsClient* client : {&first, &second}) {
    EXPECT_THAT(client->Ask("GET /readyz HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 200"));
  }
}

// A tenth of a second is far more than it takes, and far less than spinning for a second would.
TEST_F(HttpSecurityTest, AHandshakeThatStallsTakesNoProcessorTime) {
  TcpClient stalled(server_->port());
  ASSERT_TRUE(stalled.Send(std::string("\x16\x03\x01\x02\x00\x01", 6)));  // of a ClientHello
  const std::clock_t before = std::clock();
  EXPECT_FALSE(stalled.AwaitInput(/*milliseconds=*/1000));
  EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 10);
}

TEST_F(HttpSecurityTest, ALargeAnswerArrivesWhole) {
  HttpHandlers handlers;
  handlers.metrics = [] { return std::string(8 << 20, 'x'); };
  handlers.ready = [] { return true; };
  const auto server = HttpServer::Start("127.0.0.1", 0, std::move(handlers),
                                        {.connections = 8, .brief_timeout = absl::Hours(1)},
                                        {certificates_.get(), nullptr})
                          .value();
  EXPECT_GT(HttpsGet(server->port(), "/metrics").size(), size_t{8} << 20);
}

// So that no client stays with old certificates for as long as it has requests.
TEST_F(HttpSecurityTest, AConnectionEndsOnceThereAreNewerCertificates) {
  TlsClient client(server_->port(), {ca_.certificate()});
  EXPECT_THAT(client.Ask("GET /readyz HTTP/1.1\r\n\r\n"), Not(HasSubstr("close")));
  Write(ca_.Issue());
  ASSERT_TRUE(certificates_->Reload().value());
  TlsClient next(server_->port(), {ca_.certificate()});
  const std::string last = client.Exchange("GET /readyz HTTP/1.1\r\n\r\n");
  EXPECT_THAT(last, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(last, HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_THAT(next.Ask("GET /readyz HTTP/1.1\r\n\r\n"), Not(HasSubstr("close")));
}

// Also those of connections that are older.
TEST_F(HttpSecurityTest, RequestsNeedACertificateOfTheNewestClientCa) {
  std::ofstream(Path("ca")) << ca_.certificate();
  const auto certificates =
      Reloaded<Certificates>::Load({Path("cert"), Path("key"), Path("ca")}, CheckCertificates)
          .value();
  const auto server = Serve({certificates.get(), nullptr}).value();
  const TestCa next;
  const std::string request = "GET /metrics HTTP/1.1\r\n\r\n";
  TlsClient of_old(server->port(), {.ca = ca_.certificate(), .own = ca_.Issue()});
  TlsClient of_next(server->port(), {.ca = ca_.certificate(), .own = next.Issue()});
  EXPECT_THAT(of_old.Ask(request), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(of_next.Ask(request), StartsWith("HTTP/1.1 403"));
  std::ofstream(Path("ca")) << next.certificate();
  ASSERT_TRUE(certificates->Reload().value());
  EXPECT_THAT(of_old.Ask(request), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(of_next.Ask(request), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(HttpsGet(server->port(), "/metrics", {.ca = ca_.certificate(), .own = ca_.Issue()}),
              StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(HttpsGet(server->port(), "/metrics", {.ca = ca_.certificate(), .own = next.Issue()}),
              StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(HttpsGet(server->port(), "/healthz"), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpSecurityTest, ManyChangesLeaveItServing) {
  for (int change = 0; change < 10; ++change) {
    Write(ca_.Issue());
    ASSERT_TRUE(certificates_->Reload().value());
    EXPECT_THAT(HttpsGet(server_->port(), "/metrics", {ca_.certificate()}),
                StartsWith("HTTP/1.1 200"));
  }
}

}  // namespace http_security_test
}  // namespace attendant::server
