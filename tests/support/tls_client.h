// TlsClient, a TLS connection to 127.0.0.1, for tests.
#pragma once

#include <memory>
#include <string>

#include "tests/support/test_certificates.h"

namespace attendant::test_support {

struct TlsClientOptions {
  std::string ca = {};         // that has signed the server's certificate; empty: not checked
  IssuedCertificate own = {};  // empty: none
  int version = 0;             // such as TLS1_2_VERSION; 0: any
};

class TlsClient {
 public:
  // Connects, and does the handshake.
  explicit TlsClient(int port, const TlsClientOptions& options = {});
  ~TlsClient();

  bool connected() const { return connected_; }
  // Returns false if the handshake has failed or the connection has ended.
  bool Send(const std::string& bytes);
  // Returns everything that the other end sends until it ends the connection.
  std::string ReceiveAll();
  // Sends the bytes and returns what ReceiveAll does; nothing if the handshake has failed.
  std::string Exchange(const std::string& bytes) { return Send(bytes) ? ReceiveAll() : ""; }
  // Returns the next answer over HTTP, or what has come of it until the other end ends the
  // connection.
  std::string ReceiveAnswer();
  // Sends a request and returns its answer; nothing if the handshake has failed.
  std::string Ask(const std::string& request) { return Send(request) ? ReceiveAnswer() : ""; }

 private:
  struct Session;

  // Appends what comes next to `received_`. Returns false at the end of the connection.
  bool ReceiveMore();

  std::unique_ptr<Session> session_;
  bool connected_ = false;
  std::string received_;  // not returned yet
};

// Returns the head and the body of the answer to GET `path`; nothing if the handshake fails.
std::string HttpsGet(int port, const std::string& path, const TlsClientOptions& options = {});

}  // namespace attendant::test_support
