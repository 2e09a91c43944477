// HttpServer, which serves /healthz, /readyz and /metrics, and additional routes and calls.
#pragma once

#include <poll.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/listening_socket.h"
#include "server/http/http_call.h"
#include "server/http/http_connections.h"
#include "server/http/http_daemon.h"
#include "server/http/http_routes.h"
#include "server/security/server_secrets.h"

namespace attendant::server {

// All functions are called on the HTTP server's thread.
struct HttpHandlers {
  std::function<std::string()> metrics;  // returns Prometheus text
  std::function<bool()> ready;
  HttpCallHandler call = {};                   // called first; null without calls
  HttpRoutes routes = {};                      // additional ones, open to all clients
  std::vector<std::string> cors_origins = {};  // see cors.h
};

// /healthz returns 200 while the process runs, /readyz 200 or 503, /metrics 200, and paths without
// a route 404. Methods other than GET and HEAD get 405, and requests with a body 413. If a handler
// throws, the connection is closed without a response.
//
// With certificates, all connections use TLS with the newest ones. /metrics requires a token for
// TokenScope::kMetrics if there are tokens (401 without a valid one, 403 for another scope), and a
// client certificate if there is a client CA (403); other paths require neither. A handler for
// calls makes its own checks.
//
// One thread serves all connections, because responses are quick: /metrics of 20 models that have
// served requests, 198 KiB, took 1.8 ms. A connection serves requests one after the other until the
// client ends it or asks to (Connection: close, HTTP/1.0), a request with a body is refused at its
// head, or its time is over; http_connections.h defines the times and the eviction. The heads of a
// request and its response have 8 KiB: a request line that does not fit gets 414, other header
// lines 431, and a request that leaves no room for the response's head is closed. Calls have their
// own places and times; a call without a place gets 429. Thread-safe.
class HttpServer {
 public:
  // Binds the port and starts serving. Port 0 picks a free one. Returns UNAVAILABLE with address,
  // port and reason if the server cannot listen, and INVALID_ARGUMENT if GnuTLS rejects the
  // certificates.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(
      const std::string& address, int port, HttpHandlers handlers,
      const HttpLimits& limits = HttpLimitsOfProcess(), const ServerSecrets& secrets = {});
  // Closes all connections and waits for the thread to end.
  ~HttpServer();
  // Closes idle connections, and others after their response. Keeps serving one request per
  // connection.
  void Drain();
  int port() const { return listener_->port(); }

 private:
  using TimePoint = HttpConnection::TimePoint;

  HttpServer(std::unique_ptr<ListeningSocket> listener, HttpHandlers handlers,
             const HttpLimits& limits, const ServerSecrets& secrets);

  absl::Status StartThread();

  // This thread accepts connections and decides when to close them, because libmicrohttpd only has
  // a timeout that restarts with every byte, and refuses new connections when old ones take all
  // places. Everything but the constructor, the destructor and Drain runs on it.
  void Run();
  void FollowConnections();
  static void Cancel(HttpConnection& connection);
  void EndIdleConnections();
  void ResumeAnswered();
  void AbandonCalls();
  int MillisecondsToWait(TimePoint now) const;
  void Accept();
  static void Close(HttpConnection& connection);

  const std::unique_ptr<ListeningSocket> listener_;
  const std::shared_ptr<HttpWaker> waker_ = std::make_shared<HttpWaker>();
  const HttpLimits limits_;
  const ServerSecrets secrets_;
  const HttpCallHandler call_handler_;
  const std::vector<std::string> cors_origins_;
  const HttpRoutes routes_;
  HttpConnections open_;
  std::unique_ptr<HttpDaemon> daemon_;
  std::atomic<bool> draining_ = false;
  TimePoint accepts_from_ = TimePoint::min();
  int idle_rounds_ = 0;        // since the last event of poll or the library
  std::vector<pollfd> ready_;  // what Run waits for
  std::thread thread_;
};

}  // namespace attendant::server
