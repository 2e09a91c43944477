#include "server/transport/last_read.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

namespace attendant::server {
namespace last_read_test {

class LastReadTest : public ::testing::Test {
 protected:
  LastReadTest() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0); }
  ~LastReadTest() override {
    close(ends_[0]);
    close(ends_[1]);
  }

  void Send(const std::string& bytes) const {
    EXPECT_EQ(send(ends_[1], bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }

  // Reads up to four bytes of one end, as gRPC does.
  std::string Read(int end) const {
    std::string bytes(4, '\0');
    iovec part = {bytes.data(), bytes.size()};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    bytes.resize(static_cast<size_t>(recvmsg(ends_[end], &message, MSG_DONTWAIT)));
    return bytes;
  }

  int ends_[2];
};

TEST_F(LastReadTest, EachThreadHasTheConnectionThatItHasRead) {
  Send("01234567");
  EXPECT_EQ(Read(0), "0123");
  const std::optional<uint64_t> first = LastReadConnection();
  ASSERT_TRUE(first);
  std::thread([&] {
    EXPECT_FALSE(LastReadConnection());
    EXPECT_EQ(Read(0), "4567");
    EXPECT_EQ(LastReadConnection(), first);
  }).join();
  EXPECT_EQ(send(ends_[0], "8", 1, 0), 1);
  EXPECT_EQ(Read(1), "8");
  EXPECT_NE(LastReadConnection(), first);
}

TEST_F(LastReadTest, WhatIsCutHasNothingToRead) {
  Send("01234567");
  EXPECT_EQ(Read(0), "0123");
  CutLastReadConnection();
  EXPECT_EQ(Read(0), "");
  EXPECT_EQ(send(ends_[1], "8", 1, MSG_NOSIGNAL), -1);
}

TEST_F(LastReadTest, AClosedConnectionIsNone) {
  Send("0123");
  EXPECT_EQ(Read(0), "0123");
  const int spare = dup(ends_[1]);
  close(ends_[0]);
  EXPECT_FALSE(LastReadConnection());
  ends_[0] = spare;
}

}  // namespace last_read_test
}  // namespace attendant::server
