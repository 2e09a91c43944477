#include "server/security/certificates.h"

#include <string>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/support/test_certificates.h"

namespace attendant::server {
namespace certificates_test {

using attendant::test_support::IssuedCertificate;
using attendant::test_support::KeyWithPassword;
using attendant::test_support::TestCa;
using attendant::test_support::Validity;

std::string Error(const std::vector<std::string>& texts) {
  const absl::StatusOr<Certificates> certificates = CheckCertificates(texts);
  EXPECT_EQ(certificates.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(certificates.status().message());
}

TEST(CertificatesTest, AcceptsAPairAChainAndAClientCa) {
  const TestCa ca;
  const IssuedCertificate pair = ca.Issue();
  EXPECT_TRUE(CheckCertificates({pair.certificate, pair.key}).ok());
  EXPECT_TRUE(CheckCertificates({pair.certificate + ca.certificate(), pair.key}).ok());
  const auto mutual = CheckCertificates({pair.certificate, pair.key, ca.certificate()});
  ASSERT_TRUE(mutual.ok());
  EXPECT_EQ(mutual->chain, pair.certificate);
  EXPECT_EQ(mutual->key, pair.key);
  EXPECT_EQ(mutual->client_ca, ca.certificate());
}

TEST(CertificatesTest, FindsTheFirstExpiryOfTheChain) {
  const TestCa ca;
  const IssuedCertificate pair = ca.Issue();
  const auto valid = CheckCertificates({pair.certificate, pair.key});
  ASSERT_TRUE(valid.ok());
  EXPECT_GT(valid->expiry, absl::Now() + absl::Minutes(50));
  EXPECT_LT(valid->expiry, absl::Now() + absl::Minutes(70));
  const std::string expired = ca.Issue(Validity::kExpired).certificate;
  const auto with_expired = CheckCertificates({pair.certificate + expired, pair.key});
  ASSERT_TRUE(with_expired.ok());
  EXPECT_LT(with_expired->expiry, absl::Now());
}

TEST(CertificatesTest, RefusesTheKeyOfAnotherCertificate) {
  const TestCa ca;
  EXPECT_EQ(Error({ca.Issue().certificate, ca.Issue().key}),
            "--tls-key: the key does not match the certificate of --tls-cert");
  const IssuedCertificate pair = ca.Issue();
  EXPECT_EQ(Error({ca.certificate() + pair.certificate, pair.key}),
            "--tls-key: the key does not match the certificate of --tls-cert");
}

TEST(CertificatesTest, RefusesWhatIsNoCertificate) {
  const TestCa ca;
  const IssuedCertificate pair = ca.Issue();
  const std::string half = pair.certificate.substr(0, pair.certificate.size() / 2);
  for (const std::string& chain :
       {std::string(), std::string("garbage"), pair.key, half, pair.certificate + half}) {
    EXPECT_EQ(Error({chain, pair.key}),
              "--tls-cert: expected certificates in PEM, the server's first")
        << chain;
  }
  EXPECT_EQ(Error({pair.certificate, pair.key, "garbage"}),
            "--tls-client-ca: expected certificates in PEM");
}

TEST(CertificatesTest, RefusesWhatIsNoKey) {
  const IssuedCertificate pair = TestCa().Issue();
  for (const std::string& key : {std::string(), std::string("garbage"), pair.certificate,
                                 pair.key.substr(0, 100), KeyWithPassword()}) {
    EXPECT_EQ(Error({pair.certificate, key}),
              "--tls-key: expected a private key in PEM without a password")
        << key;
  }
}

}  // namespace certificates_test
}  // namespace attendant::server
