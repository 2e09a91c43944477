#include "server/http/http_server.h"

#include <microhttpd.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/http/http_connections.h"
#include "server/http/http_listener.h"
#include "server/http/http_routes.h"

namespace attendant::server {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kHeadBytes = 8192;
// How long to wait before accepting again when the process has no descriptor left.
constexpr auto kAcceptPause = std::chrono::milliseconds(100);

std::vector<HttpRoute> RoutesOf(HttpHandlers handlers) {
  return {
      {"GET", "/healthz",
       [] {
         return HttpAnswer{200, "alive\n"};
       }},
      {"GET", "/readyz",
       [ready = std::move(handlers.ready)] {
         return ready() ? HttpAnswer{200, "ready\n"} : HttpAnswer{503, "not ready\n"};
       }},
      {"GET", "/metrics",
       [metrics = std::move(handlers.metrics)] {
         return HttpAnswer{200, metrics(), "text/plain; version=0.0.4; charset=utf-8"};
       }},
  };
}

bool HasBody(MHD_Connection* connection) {
  const auto header = [&](const char* name) {
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
  };
  const char* length = header(MHD_HTTP_HEADER_CONTENT_LENGTH);
  return header(MHD_HTTP_HEADER_TRANSFER_ENCODING) != nullptr ||
         (length != nullptr && std::string_view(length) != "0");
}

MHD_Result Send(MHD_Connection* connection, HttpAnswer answer) {
  const std::unique_ptr<MHD_Response, decltype(&MHD_destroy_response)> response(
      MHD_create_response_from_buffer(answer.body.size(), answer.body.data(),
                                      MHD_RESPMEM_MUST_COPY),
      MHD_destroy_response);
  if (response == nullptr) return MHD_NO;
  const auto add = [&](const char* name, const std::string& value) {
    MHD_add_response_header(response.get(), name, value.c_str());
  };
  add(MHD_HTTP_HEADER_CONTENT_TYPE, answer.content_type);
  add(MHD_HTTP_HEADER_CONNECTION, "close");
  if (!answer.allow.empty()) add(MHD_HTTP_HEADER_ALLOW, answer.allow);
  return MHD_queue_response(connection, answer.status, response.get());
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
  return limits;
}

HttpLimits HttpLimitsOfProcess() {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  return HttpLimitsFor(limit.rlim_cur);
}

// libmicrohttpd parses requests and sends answers, in its mode without threads and without a
// listening socket. The thread here accepts the connections and decides when they are closed,
// because the library only has a time-out that every byte starts anew, and refuses new connections
// when old ones take all places. Everything but the constructor and the destructor runs on that
// thread.
class HttpServer::Impl {
 public:
  Impl(HttpListener listener, HttpHandlers handlers, const HttpLimits& limits)
      : listener_(std::move(listener)),
        routes_(RoutesOf(std::move(handlers))),
        open_(limits.connections, absl::ToChronoNanoseconds(limits.lifetime)),
        daemon_(StartDaemon(static_cast<unsigned>(limits.connections)), MHD_stop_daemon) {
    if (daemon_ != nullptr) thread_ = std::thread([this] { Run(); });
  }

  ~Impl() {
    listener_.Stop();
    if (thread_.joinable()) thread_.join();
  }

  bool started() const { return daemon_ != nullptr; }
  int port() const { return listener_.port(); }

 private:
  MHD_Daemon* StartDaemon(unsigned connections) {
    // Called once the head of a request is complete. An answer at that time means that the library
    // does not read a body.
    const MHD_AccessHandlerCallback answer = [](void* self, MHD_Connection* connection,
                                                const char* path, const char* method, auto...) {
      return static_cast<Impl*>(self)->Answer(connection, {method, path, HasBody(connection)});
    };
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, nullptr, nullptr, answer, this,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, kHeadBytes,
        // Out of reach: HttpConnections keeps the limit, but for one that is just being closed.
        MHD_OPTION_CONNECTION_LIMIT, 2 * connections,
        // Answers a request without the header Host, which probes written by hand often lack.
        MHD_OPTION_STRICT_FOR_CLIENT, -1,  //
        MHD_OPTION_NOTIFY_CONNECTION, &Impl::OnConnection, this, MHD_OPTION_END);
  }

  void Run() {
    const int events = MHD_get_daemon_info(daemon_.get(), MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    pollfd ready[] = {{events, POLLIN, 0}, {listener_.descriptor(), POLLIN, 0}};
    while (true) {
      const Clock::time_point now = Clock::now();
      while (const std::optional<int> ended = open_.Ended(now)) Close(*ended);
      ready[1].events = accepts_from_ <= now ? POLLIN : 0;
      if (poll(ready, std::size(ready), MillisecondsToWait(now)) < 0) continue;
      if ((ready[1].revents & POLLHUP) != 0) return;
      if ((ready[1].revents & POLLIN) != 0) Accept();
      MHD_run(daemon_.get());
    }
  }

  int MillisecondsToWait(Clock::time_point now) const {
    // The library has no time-outs here, so this only says whether it has work left.
    MHD_UNSIGNED_LONG_LONG unused;
    if (MHD_get_timeout(daemon_.get(), &unused) == MHD_YES) return 0;
    std::optional<Clock::time_point> wake = open_.next_end();
    if (accepts_from_ > now) wake = std::min(wake.value_or(accepts_from_), accepts_from_);
    if (!wake) return -1;
    return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(*wake - now).count());
  }

  void Accept() {
    const std::optional<AcceptedConnection> accepted = listener_.Accept();
    if (!accepted) {
      if (OutOfResources(errno)) accepts_from_ = Clock::now() + kAcceptPause;
      return;
    }
    const std::string address = accepted->address();
    if (const std::optional<int> oldest = open_.InTheWayOf(address)) Close(*oldest);
    open_.Add(accepted->descriptor, address, Clock::now());
    const auto* peer = reinterpret_cast<const sockaddr*>(&accepted->peer);
    // If this fails, the library has closed the descriptor.
    if (MHD_add_connection(daemon_.get(), accepted->descriptor, peer, accepted->peer_size) ==
        MHD_NO) {
      open_.Remove(accepted->descriptor);
    }
  }

  // The library closes the descriptor in its next run, which finds that the connection has ended.
  void Close(int connection) {
    shutdown(connection, SHUT_RDWR);
    open_.Remove(connection);
  }

  MHD_Result Answer(MHD_Connection* connection, const HttpRequest& request) {
    try {
      return Send(connection, AnswerFrom(routes_, request));
    } catch (const std::exception&) {
      return MHD_NO;  // closes the connection; the library, in C, passes no exception on
    }
  }

  static void OnConnection(void* self, MHD_Connection* connection, void** /*context*/,
                           MHD_ConnectionNotificationCode event) {
    if (event != MHD_CONNECTION_NOTIFY_CLOSED) return;
    const MHD_ConnectionInfo* info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    static_cast<Impl*>(self)->open_.Remove(info->connect_fd);
  }

  HttpListener listener_;
  const std::vector<HttpRoute> routes_;
  HttpConnections open_;
  Clock::time_point accepts_from_ = Clock::time_point::min();
  const std::unique_ptr<MHD_Daemon, decltype(&MHD_stop_daemon)> daemon_;
  std::thread thread_;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address, int port,
                                                              HttpHandlers handlers,
                                                              const HttpLimits& limits) {
  absl::StatusOr<HttpListener> listener = HttpListener::Open(address, port);
  if (!listener.ok()) return listener.status();
  auto impl = std::make_unique<Impl>(*std::move(listener), std::move(handlers), limits);
  if (!impl->started()) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", address, " port ", port,
                                               " for HTTP: ", std::strerror(errno)));
  }
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

int HttpServer::port() const { return impl_->port(); }

}  // namespace attendant::server
