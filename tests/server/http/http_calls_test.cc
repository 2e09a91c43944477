// Tests of calls that are answered later.
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/http/http_call.h"
#include "server/http/http_server.h"
#include "tests/support/tcp_client.h"

namespace attendant::server {
namespace http_calls_test {

using ::testing::EndsWith;
using ::testing::StartsWith;

// A call that does what a test says.
class TestCall final : public HttpCall {
 public:
  explicit TestCall(std::shared_ptr<HttpReply> to) : reply(std::move(to)) {}

  void OnBody(std::string_view bytes) override {
    body.append(bytes);
    if (body.find("throw in body") != std::string::npos) throw std::bad_alloc();
  }
  std::optional<HttpAnswer> OnRequest() override {
    if (body == "throw") throw std::bad_alloc();
    requested.Notify();
    if (body == "now") return HttpAnswer{200, "at once"};
    return std::nullopt;
  }
  void OnCancelled() override { cancelled.Notify(); }
  void OnEnd(End how) override {
    end = how;
    ended.Notify();
  }

  const std::shared_ptr<HttpReply> reply;
  std::string body;
  End end = End::kLost;
  absl::Notification requested, cancelled, ended;
};

class HttpCallTest : public ::testing::Test {
 protected:
  HttpCallTest() {
    HttpHandlers handlers;
    handlers.metrics = [] { return std::string(); };
    handlers.ready = [] { return true; };
    handlers.call = [this](const HttpRequest& request,
                           const std::shared_ptr<HttpReply>& reply) -> HttpStart {
      if (request.path != "/call") return std::monostate();
      absl::MutexLock lock(&mutex_);
      call_ = std::make_shared<TestCall>(reply);
      return call_;
    };
    server_ = HttpServer::Start("127.0.0.1", 0, std::move(handlers)).value();
  }

  std::shared_ptr<TestCall> AwaitCall() {
    const auto is_there = [this] { return call_ != nullptr; };
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&is_there));
    return call_;
  }
  static std::string Post(const std::string& body) {
    return absl::StrCat("POST /call HTTP/1.1\r\nHost: x\r\nContent-Length: ", body.size(),
                        "\r\n\r\n", body);
  }

  absl::Mutex mutex_;
  std::shared_ptr<TestCall> call_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpCallTest, IsAnsweredFromAnotherThread) {
  TcpClient client(server_->port());
  const std::string body(300'000, 'x');
  ASSERT_TRUE(client.Send(Post(body)));
  const std::shared_ptr<TestCall> call = AwaitCall();
  call->requested.WaitForNotification();
  EXPECT_EQ(call->body, body);
  EXPECT_THAT(Exchange(server_->port(), "GET /healthz HTTP/1.1\r\n\r\n"), EndsWith("alive\n"));
  std::thread([&] { call->reply->Send({201, "later"}); }).join();
  const std::string answer = client.ReceiveAnswer();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 201"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nlater"));
  call->ended.WaitForNotification();
  EXPECT_EQ(call->end, HttpCall::End::kSent);
  EXPECT_FALSE(call->cancelled.HasBeenNotified());
}

TEST_F(HttpCallTest, MayBeAnsweredAtOnce) {
  EXPECT_THAT(Exchange(server_->port(), Post("now")), EndsWith("at once"));
}

TEST_F(HttpCallTest, ACallThatThrowsClosesItsConnectionAlone) {
  for (const std::string body : {"throw", "throw in body"}) {
    EXPECT_EQ(Exchange(server_->port(), Post(body)), "") << body;
    EXPECT_THAT(Exchange(server_->port(), "GET /readyz HTTP/1.1\r\n\r\n"), EndsWith("ready\n"));
  }
}

TEST_F(HttpCallTest, IsToldThatItsCallerHasGone) {
  {
    TcpClient client(server_->port());
    ASSERT_TRUE(client.Send(Post("x")));
    AwaitCall()->requested.WaitForNotification();
  }
  AwaitCall()->cancelled.WaitForNotification();
  EXPECT_FALSE(AwaitCall()->ended.HasBeenNotified());
  AwaitCall()->reply->Send({200, "to nobody"});
  AwaitCall()->ended.WaitForNotification();
}

TEST_F(HttpCallTest, AnAnswerAfterTheEndOfTheServerIsDropped) {
  TcpClient client(server_->port());
  ASSERT_TRUE(client.Send(Post("x")));
  const std::shared_ptr<TestCall> call = AwaitCall();
  call->requested.WaitForNotification();
  server_.reset();
  EXPECT_TRUE(call->cancelled.HasBeenNotified());
  EXPECT_TRUE(call->ended.HasBeenNotified());
  EXPECT_EQ(client.ReceiveAll(), "");
  call->reply->Send({200, "to nobody"});
}

}  // namespace http_calls_test
}  // namespace attendant::server
