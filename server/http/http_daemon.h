// HttpDaemon, the part of the HTTP port that parses requests and sends answers: libmicrohttpd
// without threads and without a listening socket.
#pragma once

#include <microhttpd.h>

#include <memory>

#include "server/http/http_exchange.h"
#include "server/http/http_listener.h"
#include "server/security/certificates.h"

namespace attendant::server {

// Answers the requests of a daemon, which calls it in Run and Add.
class HttpDaemonHandler {
 public:
  virtual ~HttpDaemonHandler() = default;
  // Called once the head of a request is complete: an answer, or a call. If it throws, the
  // connection is closed without an answer.
  virtual HttpStart Begin(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) = 0;
  // The connection is from now on that of a call which is not brief.
  virtual void OnCall(const std::shared_ptr<HttpExchange>& exchange) = 0;
  // The connection with this descriptor is closed.
  virtual void OnClosed(int connection) = 0;
};

// For one thread. The destructor closes all connections.
class HttpDaemon {
 public:
  // Takes about this many connections; HttpConnections and HttpCalls keep the limit. With
  // `certificates` they are TLS 1.2 or newer, and callers are asked for a certificate if there is a
  // client CA, but need none until something needs one. Returns null, with errno, if it cannot
  // start, for example with certificates that GnuTLS does not take. `handler` must outlive it.
  static std::unique_ptr<HttpDaemon> Start(HttpDaemonHandler& handler,
                                           std::shared_ptr<HttpReplyQueue> replies, int connections,
                                           std::shared_ptr<const Certificates> certificates);

  // Takes over the descriptor. Returns false if it has closed it instead.
  bool Add(const AcceptedConnection& connection);
  int connections() const;
  int events() const;     // descriptor that poll finds readable when Run has something to do
  bool has_work() const;  // Run has something to do, whatever poll finds
  void Run();             // does all that can be done without waiting
  // Goes on with an exchange that waits for its answer, in the next Run of its daemon: sends the
  // answer, or closes the connection if the exchange is abandoned.
  static void Resume(HttpExchange& exchange);

 private:
  HttpDaemon(HttpDaemonHandler& handler, std::shared_ptr<HttpReplyQueue> replies,
             std::shared_ptr<const Certificates> certificates);

  MHD_Daemon* StartLibrary(int connections);
  MHD_Result Begin(MHD_Connection* connection, const char* path, const char* method,
                   void** context);
  static MHD_Result Continue(HttpExchange& exchange, const char* body, size_t* size);
  bool HasGoodCertificate(MHD_Connection* connection) const;
  static void OnConnection(void* self, MHD_Connection* connection, void** context,
                           MHD_ConnectionNotificationCode event);
  static void OnCompleted(void* self, MHD_Connection* connection, void** context,
                          MHD_RequestTerminationCode end);

  HttpDaemonHandler& handler_;
  const std::shared_ptr<HttpReplyQueue> replies_;
  const std::shared_ptr<const Certificates> certificates_;  // null: no TLS
  std::unique_ptr<MHD_Daemon, decltype(&MHD_stop_daemon)> daemon_;
};

}  // namespace attendant::server
