#include "server/transport/grpc_traffic.h"

#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <string>
#include <utility>

namespace {

bool fails_next_allocation = false;

}  // namespace

// The one that metering of TLS uses.
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  if (std::exchange(fails_next_allocation, false)) return nullptr;
  try {
    return ::operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

namespace attendant::server {
namespace grpc_traffic_test {

const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

std::string Pings(int count) {
  std::string pings;
  for (int i = 0; i < count; ++i) {
    pings += std::string("\0\0\x08\x06\0\0\0\0\0", 9) + "12345678";
  }
  return pings;
}

class GrpcTrafficTest : public ::testing::Test {
 protected:
  GrpcTrafficTest() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0); }
  ~GrpcTrafficTest() override {
    close(ends_[0]);
    close(ends_[1]);
  }

  void Send(const std::string& bytes) const {
    EXPECT_EQ(send(ends_[1], bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }

  // Reads up to four bytes of one end, as gRPC does; nothing if there are none.
  std::string Read(int end) const {
    std::string bytes(4, '\0');
    iovec part = {bytes.data(), bytes.size()};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    const ssize_t read = recvmsg(ends_[end], &message, MSG_DONTWAIT);
    bytes.resize(static_cast<size_t>(std::max<ssize_t>(read, 0)));
    return bytes;
  }

  int ends_[2];
};

TEST_F(GrpcTrafficTest, AConnectionThatCostsMoreThanItBringsEnds) {
  const auto connection = MeterTraffic(ends_[0], /*encrypted=*/false, "");
  const std::string first = kPreface + Pings(200);
  Send(first);
  for (size_t read = 0; read < first.size();) {
    const std::string more = Read(0);
    ASSERT_FALSE(more.empty());
    read += more.size();
  }
  EXPECT_FALSE(connection->is_cut());
  Send(Pings(1000));
  while (!Read(0).empty()) continue;
  EXPECT_TRUE(connection->is_cut());
  EXPECT_EQ(send(ends_[1], "8", 1, MSG_NOSIGNAL), -1);
}

TEST_F(GrpcTrafficTest, WhatIsSentPaysForFrames) {
  const auto connection = MeterTraffic(ends_[0], /*encrypted=*/false, "");
  Send(kPreface);
  std::string answer = std::string("\0\0\x37\0\0\0\0\0\1", 9) + std::string(55, 'x');  // DATA
  for (int i = 0; i < 1000; ++i) {
    iovec part = {answer.data(), answer.size()};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    ASSERT_EQ(sendmsg(ends_[0], &message, 0), 64);
    ASSERT_EQ(recv(ends_[1], answer.data(), answer.size(), 0), 64);
    Send(Pings(1));
    while (!Read(0).empty()) continue;
    ASSERT_FALSE(connection->is_cut()) << i;
  }
}

TEST_F(GrpcTrafficTest, EachUnixSocketHasANameOfItsOwn) {
  sockaddr_un before = {}, named = {};
  const auto peer_of = [](int socket, sockaddr_un& address) {
    socklen_t size = sizeof address;
    EXPECT_EQ(getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size), 0);
    return size;
  };
  EXPECT_EQ(peer_of(ends_[0], before), sizeof before.sun_family);
  const auto connection = MeterTraffic(ends_[0], /*encrypted=*/false, "");
  const socklen_t size = peer_of(ends_[0], named);
  EXPECT_EQ(named.sun_family, AF_UNIX);
  EXPECT_EQ(named.sun_path[0], '\0');
  EXPECT_EQ(std::string(named.sun_path + 1, size - sizeof named.sun_family - 1),
            connection->name());
  EXPECT_EQ(peer_of(ends_[1], named), sizeof before.sun_family) << "it is not metered";
  const auto other = MeterTraffic(ends_[1], /*encrypted=*/false, "");
  EXPECT_NE(other->name(), connection->name());
  EXPECT_EQ(FindConnection(connection->name()), connection);
  ForgetConnection(*connection);
  EXPECT_NE(FindConnection(connection->name()), connection);
  EXPECT_EQ(FindConnection(other->name()), other);
}

TEST_F(GrpcTrafficTest, ANameBelongsToItsLatestConnection) {
  const auto first = MeterTraffic(ends_[0], /*encrypted=*/false, "a port 1");
  const auto second = MeterTraffic(ends_[1], /*encrypted=*/false, "a port 1");
  ForgetConnection(*first);
  EXPECT_EQ(FindConnection("a port 1"), second);
}

TEST_F(GrpcTrafficTest, AConnectionThatTlsCannotMeterIsCut) {
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  const auto metered = MeterTraffic(ends_[0], /*encrypted=*/true, "");
  SSL_free(SSL_new(context));
  EXPECT_FALSE(metered->is_cut());
  const auto unmetered = MeterTraffic(ends_[0], /*encrypted=*/true, "");
  fails_next_allocation = true;
  SSL_free(SSL_new(context));
  EXPECT_TRUE(unmetered->is_cut());
  EXPECT_EQ(Read(1), "");
  SSL_CTX_free(context);
}

}  // namespace grpc_traffic_test
}  // namespace attendant::server
