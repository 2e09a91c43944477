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
  // Sends the bytes and returns everything that the other end sends until it ends the connection;
  // nothing if the handshake has failed.
  std::string Exchange(const std::string& bytes);

 private:
  struct Session;
  std::unique_ptr<Session> session_;
  bool connected_ = false;
};

// Returns the head and the body of the answer to GET `path`; nothing if the handshake fails.
std::string HttpsGet(int port, const std::string& path, const TlsClientOptions& options = {});

}  // namespace attendant::test_support
