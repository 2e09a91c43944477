// HttpDaemon, the part of the HTTP port that parses requests and sends answers: libmicrohttpd
// without threads and without a listening socket.
#pragma once

#include <microhttpd.h>

#include <memory>

#include "server/http/http_listener.h"
#include "server/http/http_routes.h"
#include "server/security/certificates.h"

namespace attendant::server {

// Answers the requests of a daemon, which calls it in Run and Add.
class HttpDaemonHandler {
 public:
  virtual ~HttpDaemonHandler() = default;
  // Called once the head of a request is complete. If it throws, the connection is closed without
  // an answer.
  virtual HttpAnswer Answer(const HttpRequest& request) = 0;
  // The connection with this descriptor is closed.
  virtual void OnClosed(int connection) = 0;
};

// For one thread. The destructor closes all connections.
class HttpDaemon {
 public:
  // Takes about this many connections; HttpConnections keeps the limit. With `certificates` they
  // are TLS 1.2 or newer, and callers are asked for a certificate if there is a client CA, but need
  // none until something needs one. Returns null, with errno, if it cannot start, for example with
  // certificates that GnuTLS does not take. `handler` must outlive it.
  static std::unique_ptr<HttpDaemon> Start(HttpDaemonHandler& handler, int connections,
                                           std::shared_ptr<const Certificates> certificates);

  // Takes over the descriptor. Returns false if it has closed it instead.
  bool Add(const AcceptedConnection& connection);
  int connections() const;
  int events() const;     // descriptor that poll finds readable when Run has something to do
  bool has_work() const;  // Run has something to do, whatever poll finds
  void Run();             // does all that can be done without waiting

 private:
  HttpDaemon(HttpDaemonHandler& handler, std::shared_ptr<const Certificates> certificates);

  MHD_Daemon* StartLibrary(int connections);
  MHD_Result Answer(MHD_Connection* connection, const char* path, const char* method);
  bool HasGoodCertificate(MHD_Connection* connection) const;
  static void OnConnection(void* self, MHD_Connection* connection, void** context,
                           MHD_ConnectionNotificationCode event);

  HttpDaemonHandler& handler_;
  const std::shared_ptr<const Certificates> certificates_;  // null: no TLS
  std::unique_ptr<MHD_Daemon, decltype(&MHD_stop_daemon)> daemon_;
};

}  // namespace attendant::server
