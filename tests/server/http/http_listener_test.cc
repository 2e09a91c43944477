#include "server/http/http_listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tcp_client.h"

namespace attendant::server {
namespace http_listener_test {

using ::testing::StartsWith;

std::string AddressOf(int family, const char* text) {
  AcceptedConnection connection;
  if (family == AF_INET) {
    sockaddr_in v4 = {};
    v4.sin_family = AF_INET;
    EXPECT_EQ(inet_pton(family, text, &v4.sin_addr), 1);
    std::memcpy(&connection.peer, &v4, sizeof v4);
  } else {
    sockaddr_in6 v6 = {};
    v6.sin6_family = AF_INET6;
    EXPECT_EQ(inet_pton(family, text, &v6.sin6_addr), 1);
    std::memcpy(&connection.peer, &v6, sizeof v6);
  }
  return connection.address();
}

TEST(HttpListenerTest, AnAddressIsThatOfACaller) {
  EXPECT_EQ(AddressOf(AF_INET, "127.0.0.1"), std::string("\x7f\0\0\1", 4));
  EXPECT_EQ(AddressOf(AF_INET6, "::ffff:127.0.0.1"), AddressOf(AF_INET, "127.0.0.1"));
  EXPECT_EQ(AddressOf(AF_INET6, "2001:db8:1:2::1"), AddressOf(AF_INET6, "2001:db8:1:2:ff::"));
  EXPECT_NE(AddressOf(AF_INET6, "2001:db8:1:2::1"), AddressOf(AF_INET6, "2001:db8:1:3::1"));
}

TEST(HttpListenerTest, ListensOnNamesAndOnBothFamilies) {
  for (const char* address : {"127.0.0.1", "0.0.0.0", "localhost", "::", "::1"}) {
    const absl::StatusOr<HttpListener> listener = HttpListener::Open(address, 0);
    if (std::string(address).find(':') != std::string::npos && !listener.ok()) {
      EXPECT_THAT(std::string(listener.status().message()),
                  StartsWith(std::string("cannot listen on ") + address + " port 0 for HTTP: "));
      continue;  // the machine has no IPv6
    }
    ASSERT_TRUE(listener.ok()) << listener.status();
    EXPECT_GT(listener->port(), 0) << address;
  }
}

TEST(HttpListenerTest, AnyIpv6AddressTakesIpv4Too) {
  absl::StatusOr<HttpListener> listener = HttpListener::Open("::", 0);
  if (!listener.ok()) return;  // the machine has no IPv6, see above
  EXPECT_FALSE(listener->Accept().has_value());
  const TcpClient client(listener->port());
  ASSERT_TRUE(client.connected());
  const std::optional<AcceptedConnection> accepted = listener->Accept();
  ASSERT_TRUE(accepted.has_value());
  EXPECT_EQ(accepted->address(), AddressOf(AF_INET, "127.0.0.1"));
  close(accepted->descriptor);
}

}  // namespace http_listener_test
}  // namespace attendant::server
