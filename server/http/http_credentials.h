// HttpCredentials, certificates as GnuTLS takes them, which encrypts the connections of
// libmicrohttpd.
#pragma once

#include <gnutls/gnutls.h>

#include <memory>
#include <utility>

#include "server/security/certificates.h"

namespace attendant::server {

// The library would have one set of certificates for each of its daemons; instead, each session is
// given the newest ones before its handshake. Immutable. Has to outlive the sessions that have it.
class HttpCredentials {
 public:
  // Returns null if GnuTLS refuses the certificates. Throws std::bad_alloc.
  static std::shared_ptr<const HttpCredentials> Load(
      std::shared_ptr<const Certificates> certificates);
  ~HttpCredentials() { gnutls_certificate_free_credentials(gnutls_); }
  HttpCredentials(const HttpCredentials&) = delete;
  HttpCredentials& operator=(const HttpCredentials&) = delete;

  const std::shared_ptr<const Certificates>& certificates() const { return certificates_; }

  // Before the handshake: presents the chain and, if there is a client CA, asks for a certificate.
  // The client needs none until something requires it.
  void GiveTo(gnutls_session_t session) const;
  // Whether the client CA has signed the certificate of the client, for clients, and it is valid
  // now. True without a client CA. `of_handshake` are the credentials that the session has.
  bool Trust(gnutls_session_t session, const HttpCredentials& of_handshake) const;

 private:
  HttpCredentials(std::shared_ptr<const Certificates> certificates,
                  gnutls_certificate_credentials_t gnutls)
      : certificates_(std::move(certificates)), gnutls_(gnutls) {}

  const std::shared_ptr<const Certificates> certificates_;
  const gnutls_certificate_credentials_t gnutls_;
};

}  // namespace attendant::server
