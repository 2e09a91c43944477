#include "server/transport/grpc_traffic.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string>

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
  const auto cut = MeterTraffic(ends_[0], /*encrypted=*/false);
  const std::string first = kPreface + Pings(200);
  Send(first);
  for (size_t read = 0; read < first.size();) {
    const std::string more = Read(0);
    ASSERT_FALSE(more.empty());
    read += more.size();
  }
  EXPECT_FALSE(*cut);
  Send(Pings(1000));
  while (!Read(0).empty()) continue;
  EXPECT_TRUE(*cut);
  EXPECT_EQ(send(ends_[1], "8", 1, MSG_NOSIGNAL), -1);
}

TEST_F(GrpcTrafficTest, WhatIsSentPaysForFrames) {
  const auto cut = MeterTraffic(ends_[0], /*encrypted=*/false);
  Send(kPreface);
  std::string answer(64, 'x');
  for (int i = 0; i < 1000; ++i) {
    iovec part = {answer.data(), answer.size()};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    ASSERT_EQ(sendmsg(ends_[0], &message, 0), 64);
    ASSERT_EQ(recv(ends_[1], answer.data(), answer.size(), 0), 64);
    Send(Pings(1));
    while (!Read(0).empty()) continue;
    ASSERT_FALSE(*cut) << i;
  }
}

}  // namespace grpc_traffic_test
}  // namespace attendant::server
