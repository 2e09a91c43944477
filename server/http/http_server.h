// The HTTP server for probes and metrics, /healthz, /readyz and /metrics, and for the routes and
// calls that it is given handlers for.
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
#include "server/http/cors.h"
#include "server/http/http_call.h"
#include "server/http/http_connections.h"
#include "server/http/http_daemon.h"
#include "server/http/http_routes.h"
#include "server/security/server_secrets.h"

namespace attendant::server {

// All functions are called on the thread of the HTTP server.
struct HttpHandlers {
  std::function<std::string()> metrics;  // returns Prometheus text
  std::function<bool()> ready;
  HttpCallHandler call = {};                   // asked first; null: there are no calls
  std::vector<HttpRoute> routes = {};          // further ones, which anybody may have
  std::vector<std::string> cors_origins = {};  // of CorsPolicy
};

// /healthz answers 200 as long as the process runs, /readyz 200 or 503, /metrics 200, and any other
// path that is no further route 404. Methods other than GET and HEAD are refused with 405, and
// requests with a body with 413. If a handler throws, the connection is closed without an answer.
//
// With certificates all of this is TLS, and each connection uses the newest ones. /metrics needs a
// token for TokenScope::kMetrics if there are tokens (401 without a valid one, 403 if it is for
// something else), and a certificate of the caller if there is a client CA (403); the others need
// neither. A handler for calls looks after its own.
//
// One thread serves all connections, because answers are quick: /metrics of 20 models that have
// served requests, 198 KiB, took 1.8 ms. A connection serves one request after the other, in their
// order, until a client ends it or asks for the end (Connection: close, HTTP/1.0), a request with a
// body is refused at its head, or its time is over: http_connections.h has the times, and the rule
// by which one connection makes room for another. It has 8 KiB for the heads of the request and the
// answer: a request whose first line does not fit is refused with 414, one whose other lines do not
// with 431, and one that leaves no room for the head of the answer is closed. A call that is not
// brief has places and times of its own; one that finds no place is refused with 429. Thread-safe.
class HttpServer {
 public:
  // Binds the port and starts serving. Port 0 stands for any free port. Returns UNAVAILABLE, with
  // the address, port and reason, if the server cannot listen there, and INVALID_ARGUMENT if GnuTLS
  // refuses the certificates.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(
      const std::string& address, int port, HttpHandlers handlers,
      const HttpLimits& limits = HttpLimitsOfProcess(), const ServerSecrets& secrets = {});
  // Closes all connections and waits for the thread to end.
  ~HttpServer();
  // Closes the connections that are between two requests, and those with a request after its
  // answer. Goes on serving: one request on each connection.
  void Drain();
  int port() const { return listener_->port(); }

 private:
  using TimePoint = HttpConnection::TimePoint;

  HttpServer(std::unique_ptr<ListeningSocket> listener, HttpHandlers handlers,
             const HttpLimits& limits, const ServerSecrets& secrets);

  absl::Status StartThread();

  // The thread here accepts the connections and decides when they are closed, because libmicrohttpd
  // only has a time-out that every byte starts anew, and refuses new connections when old ones take
  // all places. Everything but the constructor, the destructor and Drain runs on that thread.
  void Run();
  void FollowConnections();
  static void TellGone(HttpConnection& connection);
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
  const CorsPolicy cors_;
  const std::vector<HttpRoute> routes_;
  HttpConnections open_;
  std::unique_ptr<HttpDaemon> daemon_;
  std::atomic<bool> draining_ = false;
  TimePoint accepts_from_ = TimePoint::min();
  int idle_rounds_ = 0;        // since poll has last found something, or the library worked
  std::vector<pollfd> ready_;  // what Run waits for
  std::thread thread_;
};

}  // namespace attendant::server
