#include "server/account/peer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace attendant::server {
namespace peer_test {

const std::vector<Network> kProxies = {*ParseNetwork("10.0.0.0/8"), *ParseNetwork("fd00::/8")};

TEST(PeerTest, IsTheAddressWithoutThePort) {
  EXPECT_EQ(PeerOf("ipv4:127.0.0.1:5000", "", {}), "127.0.0.1");
  EXPECT_EQ(PeerOf("ipv6:%5B::1%5D:5000", "", {}), "::");
  EXPECT_EQ(PeerOf(*ParseAddress("2001:db8:1:2:3:4:5:6"), "", {}), "2001:db8:1:2::");
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

TEST(ConnectionTest, HasTheNameOfTheListener) {
  EXPECT_EQ(ConnectionOf("ipv4:127.0.0.1:5000"), "127.0.0.1 port 5000");
  EXPECT_EQ(ConnectionOf("ipv6:%5B::1%5D:5000"), "::1 port 5000");
  EXPECT_EQ(ConnectionOf("ipv6:%5B::ffff:192.0.2.1%5D:5000"), "192.0.2.1 port 5000");
  EXPECT_EQ(ConnectionOf("unix-abstract:unix-7"), "unix-7");
}

}  // namespace peer_test
}  // namespace attendant::server
