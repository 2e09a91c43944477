#include "server/http/http_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/settings/network.h"

namespace attendant::server {
namespace {

using Clock = std::chrono::steady_clock;

// How long to wait before accepting again when the process has no descriptor left.
constexpr auto kAcceptPause = std::chrono::milliseconds(100);
// How often the library may say that it has work and do none before it is asked less often.
constexpr int kIdleRounds = 8;
constexpr auto kWorkPause = std::chrono::milliseconds(10);
// What Run waits for before all connections.
enum OwnEvent : size_t { kListener, kWaker, kLibrary, kOwnEvents };

// Returns the response to a client that is not authorized for the metrics; nullopt if it is
// authorized.
std::optional<HttpAnswer> RefusalOf(const HttpRequest& request, const ServerSecrets& secrets) {
  if (!request.has_certificate) {
    return HttpAnswer{403, "the call needs a valid client certificate\n"};
  }
  const absl::Status status =
      secrets.Identify(request.authorization, TokenScope::kMetrics).status();
  if (status.ok()) return std::nullopt;
  HttpAnswer refusal = {403, absl::StrCat(status.message(), "\n")};
  if (absl::IsUnauthenticated(status)) {
    refusal.status = 401;
    refusal.authenticate = "Bearer";
  }
  return refusal;
}

HttpRoutes RoutesOf(HttpHandlers handlers, const ServerSecrets& secrets) {
  HttpRoutes routes = std::move(handlers.routes);
  routes["/healthz"] = [](const HttpRequest&) { return HttpAnswer{200, "alive\n"}; };
  routes["/readyz"] = [ready = std::move(handlers.ready)](const HttpRequest&) {
    return ready() ? HttpAnswer{200, "ready\n"} : HttpAnswer{503, "not ready\n"};
  };
  routes["/metrics"] = [secrets,
                        metrics = std::move(handlers.metrics)](const HttpRequest& request) {
    const std::optional<HttpAnswer> refusal = RefusalOf(request, secrets);
    if (refusal) return *refusal;
    return HttpAnswer{200, metrics(), "text/plain; version=0.0.4; charset=utf-8"};
  };
  return routes;
}

bool OutOfResources(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

// What to wait for on a connection: the library looks at the others itself. It does not look at one
// that waits for its answer, and says nothing of the first byte of a head.
short EventsOf(const HttpConnection& connection) {
  if (connection.closing) return 0;
  if (connection.phase == HttpConnection::Phase::kIdle) return POLLIN;
  return connection.phase == HttpConnection::Phase::kWaiting && !connection.cancelled ? POLLRDHUP
                                                                                      : 0;
}

}  // namespace

HttpServer::HttpServer(std::unique_ptr<ListeningSocket> listener, HttpHandlers handlers,
                       const HttpLimits& limits, const ServerSecrets& secrets)
    : listener_(std::move(listener)),
      limits_(limits),
      secrets_(secrets),
      call_handler_(handlers.call),
      cors_origins_(handlers.cors_origins),
      routes_(RoutesOf(std::move(handlers), secrets)),
      open_(limits) {}

HttpServer::~HttpServer() {
  shutdown(listener_->descriptor(), SHUT_RDWR);  // at which poll reports POLLHUP
  if (thread_.joinable()) thread_.join();
}

absl::Status HttpServer::StartThread() {
  const HttpCallHandler begin = [this](const HttpRequest& request,
                                       const std::shared_ptr<HttpReply>& reply) {
    HttpStart start;
    if (call_handler_ != nullptr) start = call_handler_(request, reply);
    if (std::holds_alternative<std::monostate>(start)) start = AnswerFrom(routes_, request);
    return start;
  };
  ASSIGN_OR_RETURN(daemon_,
                   HttpDaemon::Start({open_, waker_, begin, secrets_.certificates, cors_origins_},
                                     limits_.connections));
  ready_.reserve(kOwnEvents + 2 * static_cast<size_t>(limits_.connections));
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void HttpServer::Drain() {
  draining_ = true;
  waker_->Wake();
}

// Nothing here may throw, because nothing would catch it.
void HttpServer::Run() {
  while (true) {
    const Clock::time_point now = Clock::now();
    while (HttpConnection* ended = open_.Ended(now)) Close(*ended);
    if (draining_) EndIdleConnections();
    ready_.assign({{listener_->descriptor(), 0, 0},
                   {waker_->event(), POLLIN, 0},
                   {daemon_->events(), POLLIN, 0}});
    if (accepts_from_ <= now) ready_[kListener].events = POLLIN;
    for (const auto& connection : open_.all()) {
      const short events = EventsOf(*connection);
      if (events != 0) ready_.push_back({connection->descriptor, events, 0});
    }
    const int found = poll(ready_.data(), ready_.size(), MillisecondsToWait(now));
    if (found < 0) continue;
    idle_rounds_ = found == 0 && !daemon_->TakeWorks() ? idle_rounds_ + 1 : 0;
    if ((ready_[kListener].revents & POLLHUP) != 0) return AbandonCalls();
    FollowConnections();
    if ((ready_[kListener].revents & POLLIN) != 0) Accept();
    if (ready_[kWaker].revents != 0) ResumeAnswered();
    daemon_->Run();
  }
}

void HttpServer::FollowConnections() {
  auto event = ready_.begin() + kOwnEvents;
  for (const auto& connection : open_.all()) {
    if (EventsOf(*connection) == 0 || (event++)->revents == 0) continue;
    if (connection->phase == HttpConnection::Phase::kIdle) {
      connection->Enter(HttpConnection::Phase::kBrief);
    } else {
      Cancel(*connection);
    }
  }
}

void HttpServer::Cancel(HttpConnection& connection) {
  connection.cancelled = true;
  try {
    connection.exchange->call->OnCancelled();
  } catch (const std::exception&) {
    // Its answer comes nevertheless.
  }
}

void HttpServer::EndIdleConnections() {
  daemon_->EndConnections();
  for (const auto& connection : open_.all()) {
    if (connection->phase == HttpConnection::Phase::kIdle) Close(*connection);
  }
}

void HttpServer::ResumeAnswered() {
  waker_->Reset();
  for (const auto& connection : open_.all()) {
    const bool waits = connection->phase == HttpConnection::Phase::kWaiting;
    if (waits && connection->exchange->reply->sent()) HttpDaemon::Resume(*connection);
  }
}

// The library cannot end while a connection is suspended.
void HttpServer::AbandonCalls() {
  for (const auto& connection : open_.all()) {
    connection->closing = true;
    if (connection->phase != HttpConnection::Phase::kWaiting) continue;
    if (!connection->cancelled) Cancel(*connection);
    HttpDaemon::Resume(*connection);
  }
}

int HttpServer::MillisecondsToWait(Clock::time_point now) const {
  // The library also says that it has work while a TLS handshake waits for its client.
  const bool has_work = daemon_->has_work();
  if (has_work && idle_rounds_ < kIdleRounds) return 0;
  std::optional<Clock::time_point> wake = open_.next_end();
  const auto wake_by = [&](Clock::time_point time) { wake = std::min(wake.value_or(time), time); };
  if (has_work) wake_by(now + kWorkPause);
  if (accepts_from_ > now) wake_by(accepts_from_);
  if (!wake) return -1;
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(*wake - now);
  return static_cast<int>(std::max<int64_t>(wait.count(), 0));
}

void HttpServer::Accept() {
  sockaddr_storage peer = {};
  socklen_t size = sizeof peer;
  const int accepted = accept4(listener_->descriptor(), reinterpret_cast<sockaddr*>(&peer), &size,
                               SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (accepted < 0) {
    if (OutOfResources(errno)) accepts_from_ = Clock::now() + kAcceptPause;
    return;
  }
  HttpConnection* connection = nullptr;
  try {
    const IpAddress client = EndpointOf(peer)->address;
    const std::string address = FormatAddress(CallerNetwork(client));
    if (HttpConnection* in_the_way = open_.InTheWayOf(address)) Close(*in_the_way);
    connection = &open_.Add({accepted, address, client});
  } catch (const std::bad_alloc&) {
    close(accepted);
    return;
  }
  connection->Enter(HttpConnection::Phase::kBrief);
  daemon_->Take(*connection, reinterpret_cast<const sockaddr*>(&peer), size);
}

// The library closes the descriptor in its next run, which finds that the connection has ended.
void HttpServer::Close(HttpConnection& connection) {
  shutdown(connection.descriptor, SHUT_RDWR);
  connection.closing = true;
}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address, int port,
                                                              HttpHandlers handlers,
                                                              const HttpLimits& limits,
                                                              const ServerSecrets& secrets) {
  auto listener = ListeningSocket::BindFirst(address, port);
  absl::Status status = listener.ok() ? (*listener)->Listen() : listener.status();
  std::unique_ptr<HttpServer> server;
  if (status.ok()) {
    server.reset(new HttpServer(*std::move(listener), std::move(handlers), limits, secrets));
    status = server->StartThread();
  }
  if (absl::IsUnavailable(status)) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", address, " port ", port,
                                               " for HTTP: ", status.message()));
  }
  if (!status.ok()) return status;
  return server;
}

}  // namespace attendant::server
