#include "server/security/certificates.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>

#include "absl/strings/str_cat.h"

namespace attendant::server {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using X509Pointer = std::unique_ptr<X509, decltype(&X509_free)>;
using KeyPointer = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

absl::Status Wrong(const char* flag, const char* what) {
  return absl::InvalidArgumentError(absl::StrCat("--", flag, ": ", what));
}

Bio Open(const std::string& text) {
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), BIO_free};
}

// Returns the first of the certificates; null unless there is one and all can be read.
X509Pointer ReadAll(const std::string& text) {
  const Bio bio = Open(text);
  X509Pointer first(nullptr, X509_free);
  for (;;) {
    ERR_clear_error();
    X509Pointer next(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), X509_free);
    if (next == nullptr) break;
    if (first == nullptr) first = std::move(next);
  }
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!at_end) first.reset();
  return first;
}

int HaveNoPassword(char*, int, int, void*) { return -1; }

KeyPointer ReadKey(const std::string& text) {
  KeyPointer key(PEM_read_bio_PrivateKey(Open(text).get(), nullptr, HaveNoPassword, nullptr),
                 EVP_PKEY_free);
  ERR_clear_error();
  return key;
}

}  // namespace

absl::StatusOr<Certificates> CheckCertificates(const std::vector<std::string>& texts) {
  Certificates certificates = {texts.at(0), texts.at(1), texts.size() > 2 ? texts[2] : ""};
  const X509Pointer certificate = ReadAll(certificates.chain);
  if (certificate == nullptr) {
    return Wrong("tls-cert", "expected certificates in PEM, that of the server first");
  }
  const KeyPointer key = ReadKey(certificates.key);
  if (key == nullptr) return Wrong("tls-key", "expected a private key in PEM without a password");
  const bool match = X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  if (!match) return Wrong("tls-key", "the key is not that of the certificate of --tls-cert");
  if (texts.size() > 2 && ReadAll(certificates.client_ca) == nullptr) {
    return Wrong("tls-client-ca", "expected certificates in PEM");
  }
  return certificates;
}

}  // namespace attendant::server
