// HttpDaemon, the part of the HTTP port that parses requests and sends answers: libmicrohttpd
// without threads and without a listening socket.
#pragma once

#include <microhttpd.h>

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "server/http/cors.h"
#include "server/http/http_connections.h"
#include "server/http/http_credentials.h"
#include "server/security/reloaded.h"

namespace attendant::server {

// The parts that a daemon works with.
struct HttpDaemonParts {
  HttpConnections& open;  // outlives the daemon, which enters the phases of its connections
  std::shared_ptr<HttpWaker> waker;  // for answers to calls
  HttpCallHandler begin;             // returns an answer or a call
  // Null: no TLS. Otherwise connections are TLS 1.2 or newer, each handshake uses the newest
  // certificates, and clients are asked for one of their own if there is a client CA.
  const Reloaded<Certificates>* certificates;
  CorsPolicy cors = CorsPolicy();
};

// For one thread. The destructor closes all connections.
class HttpDaemon {
 public:
  // Returns UNAVAILABLE with the reason if the library cannot start, and INVALID_ARGUMENT if GnuTLS
  // does not take the certificates.
  static absl::StatusOr<std::unique_ptr<HttpDaemon>> Start(HttpDaemonParts parts, int connections);

  // Takes over the descriptor of a connection of `open`. The next Run removes the connection if the
  // library could not take it, and has closed it.
  void Take(const HttpConnection& connection, const sockaddr* peer, socklen_t peer_size);
  int events() const;     // descriptor that poll finds readable when Run has something to do
  bool has_work() const;  // Run has something to do, whatever poll finds, or so the library says
  // Whether Run has begun a request, received some of one or read some of an answer since the last
  // call.
  bool TakeWorks() { return std::exchange(works_, false); }
  void Run();  // does all that can be done without waiting
  // Goes on with a connection that waits, in the next Run: sends the answer, or closes the
  // connection if it is closing.
  static void Resume(HttpConnection& connection) { MHD_resume_connection(connection.library); }
  // Every answer from now on ends its connection.
  void EndConnections() { ends_connections_ = true; }

 private:
  explicit HttpDaemon(HttpDaemonParts parts)
      : parts_(std::move(parts)), daemon_(nullptr, MHD_stop_daemon) {}

  MHD_Daemon* StartLibrary(int connections);
  // Returns the newest certificates that GnuTLS takes; null: no TLS.
  const std::shared_ptr<const HttpCredentials>& NewestCredentials();
  MHD_Result Begin(HttpConnection& connection, const char* path, const char* method);
  MHD_Result Continue(HttpConnection& connection, const char* body, size_t* size);
  MHD_Result Send(HttpConnection& connection);  // the answer of its exchange
  void Open(HttpConnection& connection);
  static void OnConnection(void* self, MHD_Connection* library, void** context,
                           MHD_ConnectionNotificationCode event);
  static void OnCompleted(void* self, MHD_Connection* library, void** context,
                          MHD_RequestTerminationCode end);

  const HttpDaemonParts parts_;
  bool ends_connections_ = false;
  bool works_ = false;
  std::shared_ptr<const HttpCredentials> credentials_;     // the newest that GnuTLS takes
  std::shared_ptr<const Certificates> seen_certificates_;  // the newest
  std::unique_ptr<MHD_Daemon, decltype(&MHD_stop_daemon)> daemon_;
};

}  // namespace attendant::server
