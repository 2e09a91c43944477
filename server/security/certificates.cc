#include "server/security/certificates.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <utility>

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

// Returns the certificates; none unless all can be read.
std::vector<X509Pointer> ReadAll(const std::string& text) {
  const Bio bio = Open(text);
  std::vector<X509Pointer> all;
  for (;;) {
    ERR_clear_error();
    X509Pointer next(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), X509_free);
    if (next == nullptr) break;
    all.push_back(std::move(next));
  }
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!at_end) all.clear();
  return all;
}

absl::Time ExpiryOf(const std::vector<X509Pointer>& chain) {
  absl::Time first = absl::InfiniteFuture();
  for (const X509Pointer& certificate : chain) {
    std::tm end = {};
    if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &end) != 1) continue;
    first = std::min(first, absl::FromTM(end, absl::UTCTimeZone()));
  }
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
  Certificates certificates = {texts.at(0), texts.at(1), texts.size() > 2 ? texts[2] : "", {}};
  const std::vector<X509Pointer> chain = ReadAll(certificates.chain);
  if (chain.empty()) {
    return Wrong("tls-cert", "expected certificates in PEM, the server's first");
  }
  const KeyPointer key = ReadKey(certificates.key);
  if (key == nullptr) return Wrong("tls-key", "expected a private key in PEM without a password");
  const bool match = X509_check_private_key(chain[0].get(), key.get()) == 1;
  ERR_clear_error();
  if (!match) return Wrong("tls-key", "the key does not match the certificate of --tls-cert");
  if (texts.size() > 2 && ReadAll(certificates.client_ca).empty()) {
    return Wrong("tls-client-ca", "expected certificates in PEM");
  }
  certificates.expiry = ExpiryOf(chain);
  return certificates;
}

}  // namespace attendant::server
