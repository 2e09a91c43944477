// TestCa, which makes certificates for tests of TLS.
#pragma once

#include <memory>
#include <string>

namespace attendant::test_support {

// PEM texts.
struct IssuedCertificate {
  std::string certificate;
  std::string key;
};

enum class Validity { kNow, kExpired };

// A certificate authority with a key of its own. Everything is valid for an hour.
class TestCa {
 public:
  TestCa();
  ~TestCa();

  // The certificate of the authority.
  const std::string& certificate() const { return certificate_; }
  // Returns a certificate of 127.0.0.1 and localhost, with a new key.
  IssuedCertificate Issue(Validity validity = Validity::kNow) const;

 private:
  struct Key;
  std::unique_ptr<Key> key_;
  std::string certificate_;
};

// Returns a key in PEM with a password.
std::string KeyWithPassword();

}  // namespace attendant::test_support
