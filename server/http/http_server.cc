#include "server/http/http_server.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/http/http_calls.h"
#include "server/http/http_connections.h"
#include "server/http/http_daemon.h"
#include "server/http/http_listener.h"
#include "server/http/http_routes.h"

namespace attendant::server {
namespace {

using Clock = std::chrono::steady_clock;

// How long to wait before accepting again when the process has no descriptor left.
constexpr auto kAcceptPause = std::chrono::milliseconds(100);
// How often the library may say that it has work although poll finds nothing, each time for 16 KiB
// of an answer, before it is asked less often.
constexpr int kIdleRounds = 64;
constexpr auto kWorkPause = std::chrono::milliseconds(10);
constexpr size_t kOwnEvents = 2;  // to wait for: of the listener and of the replies

// Returns the answer to a caller who may not have what needs a token of this scope; none to one who
// may.
std::optional<HttpAnswer> RefusalOf(const HttpRequest& request, const ServerSecrets& secrets,
                                    TokenScope scope) {
  if (!request.has_certificate) return HttpAnswer{403, "the call needs a valid certificate\n"};
  const absl::Status status = secrets.Identify(request.authorization, scope).status();
  if (status.ok()) return std::nullopt;
  HttpAnswer refusal = {403, absl::StrCat(status.message(), "\n")};
  if (absl::IsUnauthenticated(status)) {
    refusal.status = 401;
    refusal.authenticate = "Bearer";
  }
  return refusal;
}

std::vector<HttpRoute> RoutesOf(HttpHandlers handlers, const ServerSecrets& secrets) {
  std::vector<HttpRoute> routes = {
      {"GET", "/healthz",
       [](const HttpRequest&) {
         return HttpAnswer{200, "alive\n"};
       }},
      {"GET", "/readyz",
       [ready = std::move(handlers.ready)](const HttpRequest&) {
         return ready() ? HttpAnswer{200, "ready\n"} : HttpAnswer{503, "not ready\n"};
       }},
      {"GET", "/metrics",
       [secrets, metrics = std::move(handlers.metrics)](const HttpRequest& request) {
         const std::optional<HttpAnswer> refusal =
             RefusalOf(request, secrets, TokenScope::kMetrics);
         if (refusal) return *refusal;
         return HttpAnswer{200, metrics(), "text/plain; version=0.0.4; charset=utf-8"};
       }},
  };
  routes.insert(routes.end(), handlers.routes.begin(), handlers.routes.end());
  return routes;
}

bool OutOfResources(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

HttpLimits HttpLimitsFor(uint64_t descriptors) {
  constexpr uint64_t kLeast = 4;
  HttpLimits limits;
  const auto most = static_cast<uint64_t>(limits.connections);
  limits.connections = static_cast<int>(std::clamp(descriptors / 8, kLeast, most));
  const auto most_calls = static_cast<uint64_t>(limits.calls.calls);
  limits.calls.calls = static_cast<int>(std::clamp(descriptors / 8, kLeast, most_calls));
  return limits;
}

HttpLimits HttpLimitsOfProcess() {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  return HttpLimitsFor(limit.rlim_cur);
}

// The thread here accepts the connections and decides when they are closed, because libmicrohttpd
// only has a time-out that every byte starts anew, and refuses new connections when old ones take
// all places. A daemon of the library has the certificates that it is started with, so new ones
// mean another daemon, which takes the new connections while the old one ends its own. Everything
// but the constructor and the destructor runs on that thread.
class HttpServer::Impl final : public HttpDaemonHandler {
 public:
  Impl(HttpListener listener, HttpHandlers handlers, const HttpLimits& limits,
       const ServerSecrets& secrets)
      : listener_(std::move(listener)),
        call_handler_(handlers.call),
        routes_(RoutesOf(std::move(handlers), secrets)),
        limits_(limits),
        secrets_(secrets),
        open_(limits.connections, absl::ToChronoNanoseconds(limits.lifetime)),
        calls_(limits.calls) {
    StartDaemon();
    if (started()) thread_ = std::thread([this] { Run(); });
  }

  ~Impl() override {
    listener_.Stop();
    if (thread_.joinable()) thread_.join();
    replies_->Close();
  }

  bool started() const { return !daemons_.empty(); }
  int port() const { return listener_.port(); }

  HttpStart Begin(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) override {
    HttpStart start;
    if (call_handler_ != nullptr) start = call_handler_(request, reply);
    if (std::holds_alternative<std::monostate>(start)) return AnswerFrom(routes_, request);
    const auto* call = std::get_if<std::shared_ptr<HttpCall>>(&start);
    if (call == nullptr || (*call)->brief()) return start;
    const absl::Status room = calls_.CheckRoomFor(request.peer);
    return room.ok() ? start : (*call)->Refuse(room);
  }
  void OnCall(const std::shared_ptr<HttpExchange>& exchange) override {
    open_.Remove(exchange->descriptor);
    calls_.Add(exchange);
  }
  void OnClosed(int connection) override {
    open_.Remove(connection);
    calls_.Remove(connection);
  }

 private:
  // Returns whether a daemon has started.
  bool StartDaemon() {
    std::shared_ptr<const Certificates> certificates;
    if (secrets_.certificates != nullptr) certificates = secrets_.certificates->current();
    std::unique_ptr<HttpDaemon> daemon =
        HttpDaemon::Start(*this, replies_, limits_.connections + limits_.calls.calls, certificates);
    const bool started = daemon != nullptr;
    if (started) {
      const size_t all =
          kOwnEvents + daemons_.size() + 1 + static_cast<size_t>(limits_.calls.calls);
      ready_.reserve(all);  // so that polling does not allocate
      daemons_.push_back(std::move(daemon));
    }
    certificates_ = std::move(certificates);
    return started;
  }

  // If there is no memory for another daemon, the old one goes on until the next connection comes.
  void FollowCertificates() {
    if (secrets_.certificates == nullptr || secrets_.certificates->current() == certificates_) {
      return;
    }
    try {
      if (!StartDaemon()) spdlog::warn("the HTTP port cannot use the new certificates");
    } catch (const std::bad_alloc&) {
      return;
    }
  }

  // Nothing here may throw, as there is nobody to catch it.
  void Run() {
    while (true) {
      const Clock::time_point now = Clock::now();
      while (const std::optional<int> ended = open_.Ended(now)) Close(*ended);
      while (const auto late = calls_.TakeEnded(now)) shutdown(late->descriptor, SHUT_RDWR);
      ready_.assign({{listener_.descriptor(), 0, 0}, {replies_->event(), POLLIN, 0}});
      if (accepts_from_ <= now) ready_[0].events = POLLIN;
      for (const auto& daemon : daemons_) ready_.push_back({daemon->events(), POLLIN, 0});
      for (const auto& exchange : calls_.all()) {
        if (exchange->waits()) ready_.push_back({exchange->descriptor, POLLRDHUP, 0});
      }
      const int found = poll(ready_.data(), ready_.size(), MillisecondsToWait(now));
      if (found < 0) continue;
      idle_rounds_ = found == 0 ? idle_rounds_ + 1 : 0;
      if ((ready_[0].revents & POLLHUP) != 0) return AbandonCalls();
      auto event = ready_.begin() + static_cast<ptrdiff_t>(kOwnEvents + daemons_.size());
      for (const auto& exchange : calls_.all()) {
        if (exchange->waits() && (event++)->revents != 0) TellGone(*exchange);
      }
      if ((ready_[0].revents & POLLIN) != 0) Accept();
      if (ready_[1].revents != 0) ResumeAnswered();
      for (const auto& daemon : daemons_) daemon->Run();
      while (daemons_.size() > 1 && daemons_.front()->connections() == 0) daemons_.pop_front();
    }
  }

  // The library does not look at a connection that is suspended.
  static void TellGone(HttpExchange& exchange) {
    exchange.gone = true;
    try {
      exchange.call->OnGone();
    } catch (const std::exception&) {
      // Its answer comes nevertheless.
    }
  }

  void ResumeAnswered() {
    std::shared_ptr<HttpExchange> answered = replies_->TakeAll();
    while (answered != nullptr) {
      if (answered->connection != nullptr) HttpDaemon::Resume(*answered);
      answered = std::exchange(answered->next, nullptr);
    }
  }

  // The library cannot end while a connection is suspended.
  void AbandonCalls() {
    ResumeAnswered();
    for (const std::shared_ptr<HttpExchange>& exchange : calls_.all()) {
      exchange->abandoned = true;
      if (exchange->phase != HttpExchange::Phase::kWaiting) continue;
      if (!exchange->gone) TellGone(*exchange);
      HttpDaemon::Resume(*exchange);
    }
  }

  int MillisecondsToWait(Clock::time_point now) const {
    // The library also says that it has work while a TLS handshake waits for its client.
    const bool has_work = std::any_of(daemons_.begin(), daemons_.end(),
                                      [](const auto& daemon) { return daemon->has_work(); });
    if (has_work && idle_rounds_ < kIdleRounds) return 0;
    std::optional<Clock::time_point> wake = open_.next_end();
    const auto wake_by = [&](Clock::time_point time) {
      wake = std::min(wake.value_or(time), time);
    };
    if (const std::optional<Clock::time_point> end = calls_.next_end()) wake_by(*end);
    if (has_work) wake_by(now + kWorkPause);
    if (accepts_from_ > now) wake_by(accepts_from_);
    if (!wake) return -1;
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(*wake - now);
    return static_cast<int>(std::max<int64_t>(wait.count(), 0));
  }

  void Accept() {
    const std::optional<AcceptedConnection> accepted = listener_.Accept();
    if (!accepted) {
      if (OutOfResources(errno)) accepts_from_ = Clock::now() + kAcceptPause;
      return;
    }
    const std::string address = accepted->address();
    if (const std::optional<int> oldest = open_.InTheWayOf(address)) Close(*oldest);
    FollowCertificates();
    open_.Add(accepted->descriptor, address, Clock::now());
    if (!daemons_.back()->Add(*accepted)) open_.Remove(accepted->descriptor);
  }

  // The library closes the descriptor in its next run, which finds that the connection has ended.
  void Close(int connection) {
    shutdown(connection, SHUT_RDWR);
    open_.Remove(connection);
  }

  HttpListener listener_;
  const std::shared_ptr<HttpReplyQueue> replies_ = std::make_shared<HttpReplyQueue>();
  const HttpCallHandler call_handler_;
  const std::vector<HttpRoute> routes_;
  const HttpLimits limits_;
  const ServerSecrets secrets_;
  HttpConnections open_;
  HttpCalls calls_;
  Clock::time_point accepts_from_ = Clock::time_point::min();
  int idle_rounds_ = 0;                               // since poll has last found something
  std::shared_ptr<const Certificates> certificates_;  // of the last daemon, or refused by GnuTLS
  std::deque<std::unique_ptr<HttpDaemon>> daemons_;   // from the oldest to the newest
  std::vector<pollfd> ready_;                         // what Run waits for
  std::thread thread_;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address, int port,
                                                              HttpHandlers handlers,
                                                              const HttpLimits& limits,
                                                              const ServerSecrets& secrets) {
  absl::StatusOr<HttpListener> listener = HttpListener::Open(address, port);
  if (!listener.ok()) return listener.status();
  errno = 0;
  auto impl = std::make_unique<Impl>(*std::move(listener), std::move(handlers), limits, secrets);
  if (!impl->started() && secrets.certificates != nullptr && errno == 0) {
    return absl::InvalidArgumentError(
        "--tls-cert, --tls-key, --tls-client-ca: GnuTLS, which the HTTP port uses, refuses them");
  }
  if (!impl->started()) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", address, " port ", port,
                                               " for HTTP: ", std::strerror(errno)));
  }
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

int HttpServer::port() const { return impl_->port(); }

}  // namespace attendant::server
