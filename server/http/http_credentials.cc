#include "server/http/http_credentials.h"

#include <gnutls/x509.h>

#include <new>
#include <string>

namespace attendant::server {
namespace {

gnutls_datum_t DatumOf(const std::string& text) {
  return {reinterpret_cast<unsigned char*>(const_cast<char*>(text.data())),
          static_cast<unsigned>(text.size())};
}

}  // namespace

std::shared_ptr<const HttpCredentials> HttpCredentials::Load(
    std::shared_ptr<const Certificates> certificates) {
  gnutls_certificate_credentials_t gnutls = nullptr;
  if (gnutls_certificate_allocate_credentials(&gnutls) != GNUTLS_E_SUCCESS) throw std::bad_alloc();
  const std::shared_ptr<const HttpCredentials> credentials(
      new HttpCredentials(std::move(certificates), gnutls));
  const Certificates& texts = *credentials->certificates_;
  const gnutls_datum_t chain = DatumOf(texts.chain), key = DatumOf(texts.key),
                       client_ca = DatumOf(texts.client_ca);
  const bool taken =
      gnutls_certificate_set_x509_key_mem(gnutls, &chain, &key, GNUTLS_X509_FMT_PEM) >= 0 &&
      (texts.client_ca.empty() ||
       gnutls_certificate_set_x509_trust_mem(gnutls, &client_ca, GNUTLS_X509_FMT_PEM) >= 0);
  return taken ? credentials : nullptr;
}

void HttpCredentials::GiveTo(gnutls_session_t session) const {
  gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, gnutls_);
  if (!certificates_->client_ca.empty()) {
    gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUEST);
  }
}

bool HttpCredentials::Trust(gnutls_session_t session, const HttpCredentials& of_handshake) const {
  if (certificates_->client_ca.empty()) return true;
  std::string purpose = GNUTLS_KP_TLS_WWW_CLIENT;
  gnutls_typed_vdata_st wanted = {GNUTLS_DT_KEY_PURPOSE_OID,
                                  reinterpret_cast<unsigned char*>(purpose.data()), 0};
  unsigned problems = 0;
  // GnuTLS verifies by the credentials that the session has.
  gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, gnutls_);
  const int error = gnutls_certificate_verify_peers(session, &wanted, 1, &problems);
  gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, of_handshake.gnutls_);
  return error == GNUTLS_E_SUCCESS && problems == 0;
}

}  // namespace attendant::server
