// HttpCredentials, certificates for GnuTLS, which encrypts libmicrohttpd's connections.
#pragma once

#include <gnutls/gnutls.h>

#include <memory>
#include <utility>

#include "server/security/certificates.h"

namespace attendant::server {

// The library supports one set of certificates per daemon; instead, each session gets the newest
// ones before its handshake. Immutable. Must outlive its sessions.
class HttpCredentials {
 public:
  // Returns null if GnuTLS rejects the certificates. Throws std::bad_alloc.
  static std::shared_ptr<const HttpCredentials> Load(
      std::shared_ptr<const Certificates> certificates);
  ~HttpCredentials() { gnutls_certificate_free_credentials(gnutls_); }
  HttpCredentials(const HttpCredentials&) = delete;
  HttpCredentials& operator=(const HttpCredentials&) = delete;

  const std::shared_ptr<const Certificates>& certificates() const { return certificates_; }

  // Call before the handshake. Presents the chain and, with a client CA, requests a certificate.
  // Clients may omit theirs until something requires it.
  void GiveTo(gnutls_session_t session) const;
  // Returns whether the client's certificate is signed by the client CA, is for clients, and is
  // valid now; true without a client CA. `of_handshake` are the session's credentials.
  bool Trust(gnutls_session_t session, const HttpCredentials& of_handshake) const;

 private:
  HttpCredentials(std::shared_ptr<const Certificates> certificates,
                  gnutls_certificate_credentials_t gnutls)
      : certificates_(std::move(certificates)), gnutls_(gnutls) {}

  const std::shared_ptr<const Certificates> certificates_;
  const gnutls_certificate_credentials_t gnutls_;
};

}  // namespace attendant::server
