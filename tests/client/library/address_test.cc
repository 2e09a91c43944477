#include "client/address.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace attendant::client {
namespace address_test {

TEST(AddressTest, TakesUrlsAsTheServersTheyName) {
  const struct {
    const char* address;
    const char* target;
    bool tls;
  } cases[] = {
      {"http://localhost:8001", "localhost:8001", false},
      {"HTTP://localhost:8001/", "localhost:8001", false},
      {"grpc://10.0.0.1:8001", "10.0.0.1:8001", false},
      {"http://[::1]:8001", "[::1]:8001", false},
      {"https://attendant.example:443", "attendant.example:443", true},
      {"grpcs://attendant.example:8001", "attendant.example:8001", true},
  };
  for (const auto& one : cases) {
    const auto read = ReadAddress(one.address);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->target, one.target);
    EXPECT_EQ(read->tls, one.tls) << one.address;
  }
}

TEST(AddressTest, LeavesTheRestToGrpc) {
  for (const std::string address :
       {"localhost:8001", "unix:/run/a.sock", "unix:///run/a.sock", "unix:1",
        "dns:///attendant:8001", "ipv4:10.0.0.1:8001,10.0.0.2:8001"}) {
    const auto read = ReadAddress(address);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->target, address);
    EXPECT_FALSE(read->tls);
  }
}

TEST(AddressTest, RefusesOtherUrlsAndHostsWithoutPort) {
  for (const std::string address :
       {"", "localhost", "localhost:", "localhost:0", "localhost:65536", "10.0.0.1",
        "http://localhost", "http://localhost:8002/v2", "http://", "https://:8001", "http://host:x",
        "http://host:0", "http://host:65536", "http://::1:8001", "http://user@host:8001",
        "grpc://host:8001?x", "http://host:8001//"}) {
    EXPECT_EQ(ReadAddress(address).status(),
              absl::InvalidArgumentError(absl::StrCat(
                  "address: expected HOST:PORT, the server's gRPC port, without a path; got \"",
                  address, "\"")));
  }
}

}  // namespace address_test
}  // namespace attendant::client
