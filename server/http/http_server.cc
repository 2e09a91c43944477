#include "server/http/http_server.h"

#include <httplib.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace attendant::server {
namespace {

constexpr size_t kThreads = 4;
constexpr time_t kTimeoutSeconds = 5;
constexpr const char* kText = "text/plain; charset=utf-8";
constexpr const char* kMetricsText = "text/plain; version=0.0.4; charset=utf-8";

// The library's default also sets SO_REUSEPORT. A second server would then share the port and
// receive half of the probes instead of failing to start.
void SetSocketOptions(socket_t socket) {
  const int yes = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
}

bool HasBody(const httplib::Request& request) {
  return request.has_header("Transfer-Encoding") ||
         (request.has_header("Content-Length") &&
          request.get_header_value("Content-Length") != "0");
}

// Called before a body is read.
httplib::Server::HandlerResponse RefuseUnlessPlainGet(const httplib::Request& request,
                                                      httplib::Response& response) {
  if (request.method != "GET") {
    response.status = 405;
    response.set_header("Allow", "GET");
  } else if (HasBody(request)) {
    response.status = 413;
  } else {
    return httplib::Server::HandlerResponse::Unhandled;
  }
  return httplib::Server::HandlerResponse::Handled;
}

}  // namespace

class HttpServer::Impl {
 public:
  explicit Impl(HttpHandlers handlers) : handlers_(std::move(handlers)) {
    server_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    server_.set_socket_options(SetSocketOptions);
    server_.set_read_timeout(kTimeoutSeconds);
    server_.set_write_timeout(kTimeoutSeconds);
    server_.set_keep_alive_max_count(1);  // an idle connection would occupy one of the few threads
    server_.set_pre_routing_handler(RefuseUnlessPlainGet);
    server_.Get("/healthz", [](const httplib::Request&, httplib::Response& response) {
      response.set_content("alive\n", kText);
    });
    server_.Get("/readyz", [this](const httplib::Request&, httplib::Response& response) {
      const bool ready = handlers_.ready();
      response.status = ready ? 200 : 503;
      response.set_content(ready ? "ready\n" : "not ready\n", kText);
    });
    server_.Get("/metrics", [this](const httplib::Request&, httplib::Response& response) {
      response.set_content(handlers_.metrics(), kMetricsText);
    });
  }

  absl::Status Listen(const std::string& address, int port) {
    errno = 0;
    if (port == 0) {
      port_ = server_.bind_to_any_port(address);
    } else {
      port_ = server_.bind_to_port(address, port) ? port : -1;
    }
    if (port_ <= 0) {
      const char* reason = errno == 0 ? "no such address" : std::strerror(errno);
      return absl::UnavailableError(
          absl::StrCat("cannot listen on ", address, " port ", port, " for HTTP: ", reason));
    }
    thread_ = std::thread([this] {
      server_.listen_after_bind();
      listening_ended_ = true;
    });
    // stop() has no effect before the server runs, so the destructor would never return.
    while (!server_.is_running() && !listening_ended_) std::this_thread::yield();
    return absl::OkStatus();
  }

  ~Impl() {
    server_.stop();
    if (thread_.joinable()) thread_.join();
  }

  int port() const { return port_; }

 private:
  const HttpHandlers handlers_;
  httplib::Server server_;
  std::thread thread_;
  std::atomic<bool> listening_ended_ = false;
  int port_ = 0;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address, int port,
                                                              HttpHandlers handlers) {
  auto impl = std::make_unique<Impl>(std::move(handlers));
  if (absl::Status status = impl->Listen(address, port); !status.ok()) return status;
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

int HttpServer::port() const { return impl_->port(); }

}  // namespace attendant::server
