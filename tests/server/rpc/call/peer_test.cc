#include "server/rpc/call/peer.h"

#include <grpcpp/server_context.h>
#include <grpcpp/test/server_context_test_spouse.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "server/security/reloaded.h"

namespace attendant::server {
namespace peer_test {

const std::vector<Network> kProxies = {*ParseNetwork("10.0.0.0/8"), *ParseNetwork("fd00::/8")};

TEST(PeerTest, IsTheAddressWithoutThePort) {
  EXPECT_EQ(PeerOf("ipv4:127.0.0.1:5000", "", {}), "127.0.0.1");
  EXPECT_EQ(PeerOf("ipv6:%5B::1%5D:5000", "", {}), "::");
  EXPECT_EQ(PeerOf("ipv6:[2001:db8:1:2:3:4:5:6]:5000", "", {}), "2001:db8:1:2::");
  EXPECT_EQ(PeerOf("ipv6:%5B::ffff:192.0.2.1%5D:5000", "", {}), "192.0.2.1");
  EXPECT_EQ(PeerOf("ipv6:%5Bfe80::1:2:3%25eth0%5D:5000", "", {}), "fe80::");
  EXPECT_EQ(ConnectionOf("ipv6:%5Bfe80::1%25eth0%5D:5000"), "fe80::1 port 5000");
  EXPECT_EQ(PeerOf("unix:/run/socket", "", {}), "unix");
  EXPECT_EQ(PeerOf("unix:", "", {}), "unix");
  EXPECT_EQ(PeerOf("unix-abstract:unix-7", "", {}), "unix");
}

TEST(PeerTest, BelievesOnlyTrustedProxies) {
  EXPECT_EQ(PeerOf("ipv4:192.0.2.1:1", "198.51.100.1", kProxies), "192.0.2.1");
  EXPECT_EQ(PeerOf("ipv4:10.0.0.1:1", "198.51.100.1", {}), "10.0.0.1");
  EXPECT_EQ(PeerOf("ipv4:10.0.0.1:1", "198.51.100.1", kProxies), "198.51.100.1");
  EXPECT_EQ(PeerOf("ipv6:%5Bfd00::1%5D:1", "2001:db8::5", kProxies), "2001:db8::");
}

TEST(PeerTest, IsTheLastAddressThatIsNoProxy) {
  EXPECT_EQ(PeerOf("ipv4:10.0.0.1:1", "203.0.113.9, 198.51.100.1, 10.0.0.2", kProxies),
            "198.51.100.1");
  EXPECT_EQ(PeerOf("ipv4:10.0.0.1:1", "10.0.0.3,10.0.0.2", kProxies), "10.0.0.3");
}

TEST(PeerTest, IsTheProxyIfThatDoesNotSay) {
  EXPECT_EQ(PeerOf("ipv4:10.0.0.1:1", "", kProxies), "10.0.0.1");
  EXPECT_EQ(PeerOf("ipv4:10.0.0.1:1", "198.51.100.1, unknown", kProxies), "10.0.0.1");
}

TEST(PeerTest, IsTheTokenOfTheCallOrItIsRefused) {
  // The SHA-256 of "test".
  const auto tokens = *Reloaded<Tokens>::Load({}, [](const std::vector<std::string>&) {
    return Tokens::Parse("infer 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08");
  });
  const ServerSecrets secrets = {.certificates = nullptr, .tokens = tokens.get()};
  const auto peer_with = [](const std::vector<std::string>& headers, const ServerSecrets& known) {
    grpc::ServerContext call;  // of no connection, so that its address is empty
    grpc::testing::ServerContextTestSpouse spouse(&call);
    for (const std::string& each : headers) spouse.AddClientMetadata("authorization", each);
    return IdentifyPeer(call, {}, known);
  };
  const absl::Status refusal = absl::UnauthenticatedError("the call needs a valid bearer token");
  EXPECT_EQ(*peer_with({"Bearer test"}, secrets), "token 9f86d081884c7d65");
  EXPECT_EQ(peer_with({}, secrets).status(), refusal);
  EXPECT_EQ(peer_with({"Bearer other"}, secrets).status(), refusal);
  EXPECT_EQ(peer_with({"Bearer test", "Bearer test"}, secrets).status(), refusal);
  EXPECT_EQ(*peer_with({"Bearer test"}, {}), "");
}

TEST(ConnectionTest, HasTheNameOfTheListener) {
  EXPECT_EQ(ConnectionOf("ipv4:127.0.0.1:5000"), "127.0.0.1 port 5000");
  EXPECT_EQ(ConnectionOf("ipv6:%5B::1%5D:5000"), "::1 port 5000");
  EXPECT_EQ(ConnectionOf("ipv6:%5B::ffff:192.0.2.1%5D:5000"), "192.0.2.1 port 5000");
  EXPECT_EQ(ConnectionOf("unix-abstract:unix-7"), "unix-7");
}

}  // namespace peer_test
}  // namespace attendant::server
