#include "tests/support/test_certificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <atomic>
#include <stdexcept>

namespace attendant::test_support {

template <typename T, void (*Free)(T*)>
struct Freer {
  void operator()(T* object) const { Free(object); }
};
using KeyPointer = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY, EVP_PKEY_free>>;
using X509Pointer = std::unique_ptr<X509, Freer<X509, X509_free>>;
using Bio = std::unique_ptr<BIO, Freer<BIO, BIO_free_all>>;

namespace {

void Require(bool worked) {
  if (!worked) throw std::runtime_error("OpenSSL makes no test certificate");
}

KeyPointer NewKey() {
  KeyPointer key(EVP_EC_gen("P-256"));
  Require(key != nullptr);
  return key;
}

Bio Memory() { return Bio(BIO_new(BIO_s_mem())); }

std::string Text(const Bio& bio) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &bytes);
  return std::string(bytes, static_cast<size_t>(size));
}

std::string ToPem(X509* certificate) {
  const Bio bio = Memory();
  Require(PEM_write_bio_X509(bio.get(), certificate) == 1);
  return Text(bio);
}

std::string ToPem(EVP_PKEY* key, const char* password = nullptr) {
  const Bio bio = Memory();
  const EVP_CIPHER* cipher = password == nullptr ? nullptr : EVP_aes_128_cbc();
  Require(PEM_write_bio_PrivateKey(bio.get(), key, cipher, nullptr, 0, nullptr,
                                   const_cast<char*>(password)) == 1);
  return Text(bio);
}

void AddExtension(X509* certificate, int kind, const char* value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value);
  Require(extension != nullptr && X509_add_ext(certificate, extension, -1) == 1);
  X509_EXTENSION_free(extension);
}

void SetName(X509* certificate, bool issuer, const std::string& name) {
  std::unique_ptr<X509_NAME, Freer<X509_NAME, X509_NAME_free>> entry(X509_NAME_new());
  Require(X509_NAME_add_entry_by_txt(entry.get(), "CN", MBSTRING_ASC,
                                     reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1,
                                     0) == 1);
  Require((issuer ? X509_set_issuer_name(certificate, entry.get())
                  : X509_set_subject_name(certificate, entry.get())) == 1);
}

X509Pointer NewCertificate(EVP_PKEY* key, Validity validity) {
  static std::atomic<long> serial = 1;
  constexpr long kHour = 3600;
  X509Pointer certificate(X509_new());
  Require(X509_set_version(certificate.get(), 2) == 1);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial++);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -2 * kHour);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()),
                  validity == Validity::kNow ? kHour : -kHour);
  Require(X509_set_pubkey(certificate.get(), key) == 1);
  return certificate;
}

}  // namespace

struct TestCa::Key {
  KeyPointer pointer = NewKey();
};

TestCa::TestCa() : key_(std::make_unique<Key>()) {
  const X509Pointer certificate = NewCertificate(key_->pointer.get(), Validity::kNow);
  SetName(certificate.get(), /*issuer=*/true, "test authority");
  SetName(certificate.get(), /*issuer=*/false, "test authority");
  AddExtension(certificate.get(), NID_basic_constraints, "critical,CA:TRUE");
  Require(X509_sign(certificate.get(), key_->pointer.get(), EVP_sha256()) > 0);
  certificate_ = ToPem(certificate.get());
}

TestCa::~TestCa() = default;

IssuedCertificate TestCa::Issue(Validity validity) const {
  const KeyPointer key = NewKey();
  const X509Pointer certificate = NewCertificate(key.get(), validity);
  SetName(certificate.get(), /*issuer=*/true, "test authority");
  SetName(certificate.get(), /*issuer=*/false, "test");
  AddExtension(certificate.get(), NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
  Require(X509_sign(certificate.get(), key_->pointer.get(), EVP_sha256()) > 0);
  return {ToPem(certificate.get()), ToPem(key.get())};
}

std::string KeyWithPassword() { return ToPem(NewKey().get(), "a password"); }

}  // namespace attendant::test_support
