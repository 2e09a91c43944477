// HttpDaemon, the HTTP port's request parser and sender: libmicrohttpd without threads and without
// a listening socket.
#pragma once

#include <microhttpd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/http/http_connections.h"
#include "server/http/http_credentials.h"
#include "server/security/reloaded.h"

namespace attendant::server {

// The collaborators of a daemon.
struct HttpDaemonParts {
  HttpConnections& open;             // outlives the daemon, which sets the phases
  std::shared_ptr<HttpWaker> waker;  // for answers to calls
  HttpCallHandler begin;             // returns a response or a call
  // Null without TLS. Otherwise connections require TLS 1.2 or later, each handshake uses the
  // newest certificates, and clients are asked for a certificate if there is a client CA.
  const Reloaded<Certificates>* certificates;
  std::vector<std::string> cors_origins;
};

// Not thread-safe. The destructor closes all connections.
class HttpDaemon {
 public:
  // Returns UNAVAILABLE with the reason if the library cannot start, and INVALID_ARGUMENT if GnuTLS
  // rejects the certificates.
  static absl::StatusOr<std::unique_ptr<HttpDaemon>> Start(HttpDaemonParts parts, int connections);

  // Takes ownership of the descriptor of a connection in `open`. If the library cannot take it, it
  // closes it, and the next Run removes the connection.
  void Take(const HttpConnection& connection, const sockaddr* peer, socklen_t peer_size);
  int events() const;     // readable when Run has work
  bool has_work() const;  // Run has work regardless of poll, according to the library
  // Returns whether, since the last call, Run began a request, received part of one or read part of
  // a response.
  bool TakeWorks() { return std::exchange(works_, false); }
  void Run();  // does everything possible without blocking
  // Continues a waiting connection in the next Run: sends its response, or closes it if it is
  // closing.
  static void Resume(HttpConnection& connection) { MHD_resume_connection(connection.library); }
  // Makes every further response end its connection.
  void EndConnections() { ends_connections_ = true; }

 private:
  explicit HttpDaemon(HttpDaemonParts parts)
      : parts_(std::move(parts)), daemon_(nullptr, MHD_stop_daemon) {}

  MHD_Daemon* StartLibrary(int connections);
  // Returns the newest certificates that GnuTLS accepts; null without TLS.
  const std::shared_ptr<const HttpCredentials>& NewestCredentials();
  MHD_Result Begin(HttpConnection& connection, const char* target, const char* method);
  MHD_Result Continue(HttpConnection& connection, const char* body, size_t* size);
  MHD_Result Send(HttpConnection& connection);  // the exchange's response
  void Open(HttpConnection& connection);
  static void OnConnection(void* self, MHD_Connection* library, void** context,
                           MHD_ConnectionNotificationCode event);
  static void OnCompleted(void* self, MHD_Connection* library, void** context,
                          MHD_RequestTerminationCode end);

  const HttpDaemonParts parts_;
  bool ends_connections_ = false;
  bool works_ = false;
  std::shared_ptr<const HttpCredentials> credentials_;     // the newest that GnuTLS accepts
  std::shared_ptr<const Certificates> seen_certificates_;  // the newest
  std::unique_ptr<MHD_Daemon, decltype(&MHD_stop_daemon)> daemon_;
};

}  // namespace attendant::server
