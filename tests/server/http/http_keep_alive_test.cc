// Tests of connections that stay open between requests, with TLS and without.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/http/http_server.h"
#include "tests/support/tcp_client.h"
#include "tests/support/test_certificates.h"
#include "tests/support/tls_client.h"

namespace attendant::server {
namespace http_keep_alive_test {

using attendant::test_support::TestCa;
using attendant::test_support::TlsClient;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

const std::string kHealthz = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
const std::string kCall = "POST /call HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi";
const std::string kClose = "\r\nConnection: close\r\n";

// A connection, with TLS or without.
class Caller {
 public:
  Caller(int port, bool tls) {
    if (tls) {
      tls_.emplace(port);
    } else {
      tcp_.emplace(port);
    }
  }
  bool Send(const std::string& bytes) { return tls_ ? tls_->Send(bytes) : tcp_->Send(bytes); }
  std::string ReceiveAnswer() { return tls_ ? tls_->ReceiveAnswer() : tcp_->ReceiveAnswer(); }
  std::string Ask(const std::string& request) { return Send(request) ? ReceiveAnswer() : ""; }
  // Returns what comes until the other end closes the connection.
  std::string AwaitEnd() { return tls_ ? tls_->ReceiveAll() : tcp_->ReceiveAll(); }

 private:
  std::optional<TcpClient> tcp_;
  std::optional<TlsClient> tls_;
};

// A call that a test answers.
class HeldCall final : public HttpCall {
 public:
  explicit HeldCall(std::shared_ptr<HttpReply> to) : reply(std::move(to)) {}

  void OnBody(std::string_view) override {}
  std::optional<HttpAnswer> OnRequest() override {
    requested.Notify();
    return std::nullopt;
  }
  void OnCancelled() override { cancelled.Notify(); }
  void OnEnd(End) override {}

  const std::shared_ptr<HttpReply> reply;
  absl::Notification requested, cancelled;
};

class HttpKeepAliveTest : public ::testing::TestWithParam<bool> {
 protected:
  // Places and times that no test waits for.
  void Serve(HttpLimits limits = {.brief_timeout = absl::Hours(1)}) {
    ServerSecrets secrets;
    if (GetParam()) secrets.certificates = OwnCertificates();
    HttpHandlers handlers;
    handlers.metrics = [] { return std::string(100'000, 'x'); };
    handlers.ready = [] { return true; };
    handlers.call = [this](const HttpRequest& request,
                           const std::shared_ptr<HttpReply>& reply) -> HttpStart {
      if (request.path != "/call") return std::monostate();
      if (!request.call_room.ok()) return HttpAnswer{429};
      absl::MutexLock lock(&mutex_);
      call_ = std::make_shared<HeldCall>(reply);
      return call_;
    };
    server_ = HttpServer::Start("127.0.0.1", 0, std::move(handlers), limits, secrets).value();
  }

  // Made once, since keys take long.
  static const Reloaded<Certificates>* OwnCertificates() {
    static const auto* const made = [] {
      const auto own = TestCa().Issue();
      return Reloaded<Certificates>::Load({},
                                          [own](const auto&) -> absl::StatusOr<Certificates> {
                                            return Certificates{own.certificate, own.key, ""};
                                          })
          .value()
          .release();
    }();
    return made;
  }

  Caller Connect() const { return Caller(server_->port(), GetParam()); }
  std::shared_ptr<HeldCall> AwaitRequest() {
    const auto is_there = [this] { return call_ != nullptr; };
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&is_there));
    call_->requested.WaitForNotification();
    return std::exchange(call_, nullptr);
  }

  absl::Mutex mutex_;
  std::shared_ptr<HeldCall> call_;
  std::unique_ptr<HttpServer> server_;
};

INSTANTIATE_TEST_SUITE_P(Connections, HttpKeepAliveTest, ::testing::Bool(),
                         [](const auto& tls) { return tls.param ? "Tls" : "Plain"; });

TEST_P(HttpKeepAliveTest, RequestsOfAllKindsFollowEachOther) {
  Serve();
  Caller caller = Connect();
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(caller.Ask(kHealthz), AllOf(EndsWith("alive\n"), Not(HasSubstr(kClose))));
    ASSERT_TRUE(caller.Send(kCall));
    AwaitRequest()->reply->Send({201, "later"});
    EXPECT_THAT(caller.ReceiveAnswer(), AllOf(EndsWith("later"), Not(HasSubstr(kClose))));
    EXPECT_THAT(caller.Ask("GET /metrics HTTP/1.1\r\n\r\n"), EndsWith("xxx"));
    EXPECT_THAT(caller.Ask("GET /none HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404"));
  }
}

TEST_P(HttpKeepAliveTest, PipelinedRequestsAreAnsweredInTheirOrder) {
  Serve();
  Caller caller = Connect();
  ASSERT_TRUE(caller.Send(kHealthz + kCall + "GET /none HTTP/1.1\r\n\r\n" + kHealthz + kCall));
  EXPECT_THAT(caller.ReceiveAnswer(), EndsWith("alive\n"));
  AwaitRequest()->reply->Send({201, "first"});
  EXPECT_THAT(caller.ReceiveAnswer(), EndsWith("first"));
  EXPECT_THAT(caller.ReceiveAnswer(), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(caller.ReceiveAnswer(), EndsWith("alive\n"));
  AwaitRequest()->reply->Send({201, "second"});
  EXPECT_THAT(caller.ReceiveAnswer(), EndsWith("second"));
}

TEST_P(HttpKeepAliveTest, ManyPipelinedRequestsAreAllAnswered) {
  Serve();
  Caller caller = Connect();
  std::string requests;
  for (int i = 0; i < 1000; ++i) requests += kHealthz;  // more than a connection holds
  ASSERT_TRUE(caller.Send(requests));
  for (int i = 0; i < 1000; ++i) ASSERT_THAT(caller.ReceiveAnswer(), EndsWith("alive\n")) << i;
}

TEST_P(HttpKeepAliveTest, ClientsAskForTheEnd) {
  Serve();
  for (const std::string request :
       {"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n", "GET /healthz HTTP/1.0\r\n\r\n"}) {
    Caller caller = Connect();
    EXPECT_THAT(caller.Ask(request), AllOf(HasSubstr(kClose), EndsWith("alive\n"))) << request;
    EXPECT_THAT(caller.AwaitEnd(), IsEmpty()) << request;
  }
  Caller old = Connect();
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(old.Ask("GET /healthz HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"),
                EndsWith("alive\n"));
  }
}

TEST_P(HttpKeepAliveTest, AnIdleConnectionIsClosed) {
  Serve({.idle_timeout = absl::Milliseconds(50), .brief_timeout = absl::Hours(1)});
  Caller caller = Connect();
  EXPECT_THAT(caller.Ask(kHealthz), EndsWith("alive\n"));
  EXPECT_THAT(caller.AwaitEnd(), IsEmpty());
}

TEST_P(HttpKeepAliveTest, AnIdleConnectionOutlivesTheTimeOfARequest) {
  Serve({.brief_timeout = absl::Milliseconds(50)});
  Caller caller = Connect();
  EXPECT_THAT(caller.Ask(kHealthz), EndsWith("alive\n"));
  Caller silent = Connect();
  EXPECT_THAT(silent.AwaitEnd(), IsEmpty());  // so that time is over
  EXPECT_THAT(caller.Ask(kHealthz), EndsWith("alive\n"));
}

TEST_P(HttpKeepAliveTest, AHeadHasItsTimeFromItsFirstByte) {
  Serve({.idle_timeout = absl::Hours(1), .brief_timeout = absl::Milliseconds(100)});
  Caller caller = Connect();
  EXPECT_THAT(caller.Ask(kHealthz), EndsWith("alive\n"));
  ASSERT_TRUE(caller.Send("GET /"));
  EXPECT_THAT(caller.AwaitEnd(), IsEmpty());
}

TEST_P(HttpKeepAliveTest, TheOneThatIsIdleLongestMakesRoom) {
  Serve({.connections = 3, .brief_timeout = absl::Hours(1)});
  Caller first = Connect(), second = Connect(), third = Connect();
  for (Caller* caller : {&first, &second, &third, &first}) {
    EXPECT_THAT(caller->Ask(kHealthz), EndsWith("alive\n"));
  }
  Caller fourth = Connect();
  EXPECT_THAT(second.AwaitEnd(), IsEmpty());
  for (Caller* caller : {&first, &third, &fourth}) {
    EXPECT_THAT(caller->Ask(kHealthz), EndsWith("alive\n"));
  }
}

TEST_P(HttpKeepAliveTest, AProbeIsAnsweredByAFullServer) {
  Serve({.connections = 2, .calls = 1, .brief_timeout = absl::Hours(1)});
  Caller first = Connect(), idle = Connect();
  ASSERT_TRUE(first.Send(kCall));
  const auto call = AwaitRequest();
  EXPECT_THAT(idle.Ask(kHealthz), EndsWith("alive\n"));
  EXPECT_THAT(idle.Ask(kCall), StartsWith("HTTP/1.1 429"));
  Caller silent = Connect();
  Caller probe = Connect();
  EXPECT_THAT(probe.Ask(kHealthz), EndsWith("alive\n"));
  call->reply->Send({201, "later"});
  EXPECT_THAT(first.ReceiveAnswer(), EndsWith("later"));
}

TEST_P(HttpKeepAliveTest, AHangUpIsSeenWhileAnAnswerIsAwaited) {
  Serve();
  std::shared_ptr<HeldCall> call;
  {
    Caller caller = Connect();
    EXPECT_THAT(caller.Ask(kHealthz), EndsWith("alive\n"));
    ASSERT_TRUE(caller.Send(kCall + kHealthz));
    call = AwaitRequest();
    EXPECT_FALSE(call->cancelled.HasBeenNotified());
  }
  call->cancelled.WaitForNotification();
  call->reply->Send({200, "to nobody"});
  Caller next = Connect();
  EXPECT_THAT(next.Ask(kHealthz), EndsWith("alive\n"));
}

TEST_P(HttpKeepAliveTest, DrainingEndsConnections) {
  Serve();
  Caller idle = Connect(), fresh = Connect(), waiting = Connect();
  for (Caller* caller : {&idle, &waiting}) {
    EXPECT_THAT(caller->Ask(kHealthz), Not(HasSubstr(kClose)));
  }
  ASSERT_TRUE(waiting.Send(kCall));
  const auto call = AwaitRequest();
  server_->Drain();
  EXPECT_THAT(idle.AwaitEnd(), IsEmpty());
  call->reply->Send({201, "later"});
  EXPECT_THAT(waiting.ReceiveAnswer(), AllOf(HasSubstr(kClose), EndsWith("later")));
  EXPECT_THAT(waiting.AwaitEnd(), IsEmpty());
  Caller late = Connect();
  for (Caller* caller : {&fresh, &late}) {
    EXPECT_THAT(caller->Ask(kHealthz), AllOf(HasSubstr(kClose), EndsWith("alive\n")));
    EXPECT_THAT(caller->AwaitEnd(), IsEmpty());
  }
}

TEST_P(HttpKeepAliveTest, ABodyThatIsRefusedEndsItsConnection) {
  Serve();
  for (const std::string request : {"GET /healthz", "POST /metrics"}) {
    Caller caller = Connect();
    EXPECT_THAT(caller.Ask(kHealthz), EndsWith("alive\n"));
    EXPECT_THAT(caller.Ask(request + " HTTP/1.1\r\nContent-Length: 1000000\r\n\r\nx"),
                AllOf(StartsWith("HTTP/1.1 4"), HasSubstr(kClose)));
    caller.AwaitEnd();
  }
}

}  // namespace http_keep_alive_test
}  // namespace attendant::server
