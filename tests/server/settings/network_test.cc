#include "server/settings/network.h"

#include <gtest/gtest.h>

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

}  // namespace network_test
}  // namespace attendant::server
