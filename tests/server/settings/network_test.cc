#include "server/settings/network.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstring>

namespace attendant::server {
namespace network_test {

bool Contains(const std::string& network, const std::string& address) {
  return ParseNetwork(network)->Contains(*ParseAddress(address));
}

TEST(NetworkTest, ContainsItsAddresses) {
  EXPECT_TRUE(Contains("10.0.0.0/8", "10.255.0.1"));
  EXPECT_FALSE(Contains("10.0.0.0/8", "11.0.0.1"));
  EXPECT_TRUE(Contains("10.128.0.0/9", "10.129.0.1"));
  EXPECT_FALSE(Contains("10.128.0.0/9", "10.127.0.1"));
  EXPECT_TRUE(Contains("10.0.0.1", "10.0.0.1"));
  EXPECT_FALSE(Contains("10.0.0.1", "10.0.0.2"));
  EXPECT_TRUE(Contains("0.0.0.0/0", "192.0.2.1"));
  EXPECT_FALSE(Contains("0.0.0.0/0", "2001:db8::1"));
  EXPECT_TRUE(Contains("fd00::/8", "fdff::1"));
  EXPECT_FALSE(Contains("fd00::/8", "fe80::1"));
  EXPECT_TRUE(Contains("::/0", "192.0.2.1"));
}

TEST(NetworkTest, IsShownAsItIsRead) {
  for (const char* text : {"10.0.0.0/8", "192.0.2.1/32", "fd00::/8", "::1/128", "::/0"}) {
    EXPECT_EQ(FormatNetwork(*ParseNetwork(text)), text);
  }
  EXPECT_EQ(FormatNetwork(*ParseNetwork("192.0.2.1")), "192.0.2.1/32");
}

TEST(NetworkTest, RefusesEverythingElse) {
  for (const char* text : {"", "/8", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "10.0.0/8",
                           "::/129", "localhost", "10.0.0.0/8/8"}) {
    EXPECT_FALSE(ParseNetwork(text)) << text;
  }
}

// An address as accept() returns it.
sockaddr_storage PeerAt(const char* text) {
  sockaddr_storage peer = {};
  sockaddr_in v4 = {};
  sockaddr_in6 v6 = {};
  v4.sin_family = AF_INET;
  v4.sin_port = v6.sin6_port = htons(5000);
  v6.sin6_family = AF_INET6;
  if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
    std::memcpy(&peer, &v4, sizeof v4);
  } else {
    EXPECT_EQ(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
    std::memcpy(&peer, &v6, sizeof v6);
  }
  return peer;
}

TEST(NetworkTest, AnEndpointIsTheOtherEndOfAConnection) {
  for (const char* text : {"192.0.2.1", "2001:db8::1"}) {
    const std::optional<Endpoint> endpoint = EndpointOf(PeerAt(text));
    ASSERT_TRUE(endpoint);
    EXPECT_EQ(FormatAddress(endpoint->address), text);
    EXPECT_EQ(endpoint->port, 5000);
  }
  sockaddr_storage unix_socket = {};
  unix_socket.ss_family = AF_UNIX;
  EXPECT_FALSE(EndpointOf(unix_socket));
}

TEST(NetworkTest, ACallerHasAnIpv4AddressOrANetworkOf64Bits) {
  const auto network = [](const char* text) {
    return FormatAddress(CallerNetwork(EndpointOf(PeerAt(text))->address));
  };
  EXPECT_EQ(network("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(network("::ffff:127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(network("2001:db8:1:2::1"), network("2001:db8:1:2:ff::"));
  EXPECT_NE(network("2001:db8:1:2::1"), network("2001:db8:1:3::1"));
}

}  // namespace network_test
}  // namespace attendant::server
