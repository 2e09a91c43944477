#include "server/transport/unfinished_messages.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/allocation_counter.h"

namespace attendant::server {
namespace unfinished_messages_test {

constexpr int64_t kWindow = UnfinishedMessages::kFirstWindow;

std::string Message(uint32_t length, char flag = 0) {
  const std::string prefix = {flag, static_cast<char>(length >> 24),
                              static_cast<char>(length >> 16), static_cast<char>(length >> 8),
                              static_cast<char>(length)};
  return prefix + std::string(length, 'x');
}

TEST(UnfinishedMessagesTest, TheFirstWindowOfEachStreamIsLeftOut) {
  UnfinishedMessages messages(3);
  for (const uint32_t stream : {1, 3}) {
    messages.Begin(stream);
    const std::string message = Message(500'000);
    messages.Receive(stream, message.substr(0, 5 + kWindow));
    EXPECT_EQ(messages.beyond_first_windows(), 0);
    EXPECT_EQ(messages.largest(), kWindow);
  }
  messages.Receive(1, std::string(10, 'x'));
  messages.Receive(3, std::string(7, 'x'));
  EXPECT_EQ(messages.beyond_first_windows(), 17);
  EXPECT_EQ(messages.largest(), kWindow + 10);
}

TEST(UnfinishedMessagesTest, AStreamMayHaveManyMessages) {
  UnfinishedMessages messages(3);
  messages.Begin(1);
  const std::string compressed = Message(200'000, /*flag=*/1);
  messages.Receive(1, Message(0) + Message(100'000) + Message(3) + compressed.substr(0, 150'000));
  EXPECT_EQ(messages.largest(), 150'000 - 5);
  messages.Receive(1, compressed.substr(150'000) + Message(0) + Message(70'000).substr(0, 4));
  EXPECT_EQ(messages.largest(), 0);
  messages.Receive(1, Message(70'000).substr(4, 69'001));
  EXPECT_EQ(messages.largest(), 69'000);
  messages.Receive(1, Message(70'000).substr(69'005) + Message(4096).substr(0, 1000));
  EXPECT_EQ(messages.largest(), 995);
  EXPECT_EQ(messages.beyond_first_windows(), 0);
}

TEST(UnfinishedMessagesTest, AMessageMayHaveAnyLength) {
  UnfinishedMessages messages(3);
  messages.Begin(1);
  messages.Receive(1, std::string("\0\xff\xff\xff\xff", 5));
  messages.Receive(1, std::string(300'000, 'x'));
  EXPECT_EQ(messages.largest(), 300'000);
  EXPECT_EQ(messages.beyond_first_windows(), 300'000 - kWindow);
}

TEST(UnfinishedMessagesTest, StreamsThatAreNotOpenCountNothing) {
  UnfinishedMessages messages(3);
  messages.Receive(1, Message(500'000).substr(0, 400'000));
  messages.Begin(1);
  messages.Begin(3);
  messages.Receive(1, Message(500'000).substr(0, 400'000));
  messages.Begin(1);  // trailers
  EXPECT_EQ(messages.largest(), 400'000 - 5);
  messages.EndByServer(1);
  messages.EndByServer(7);
  messages.Receive(1, std::string(400'000, 'x'));
  EXPECT_EQ(messages.largest(), 0);
  messages.EndByClient(1);
  messages.EndByClient(7);
  EXPECT_EQ(messages.beyond_first_windows(), 0);
}

TEST(UnfinishedMessagesTest, AClientHasSoManyStreams) {
  UnfinishedMessages messages(3);
  for (const uint32_t stream : {7, 1, 5}) EXPECT_TRUE(messages.Begin(stream));
  EXPECT_TRUE(messages.Begin(5));
  EXPECT_FALSE(messages.Begin(9));
  messages.EndByServer(1);
  EXPECT_FALSE(messages.Begin(9));
  messages.EndByClient(1);
  EXPECT_TRUE(messages.Begin(9));
}

TEST(UnfinishedMessagesTest, DoesNotAllocateOnceItIsMade) {
  UnfinishedMessages messages(3);
  const std::string message = Message(500).substr(0, 105);
  const test_support::AllocationCounter counter;
  for (const uint32_t stream : {7, 1, 5}) messages.Begin(stream);
  messages.Receive(5, message);
  messages.EndByClient(1);
  messages.Begin(9);
  EXPECT_EQ(counter.count(), 0);
}

TEST(UnfinishedMessagesTest, FindsTheNewestThatHoldTheBytes) {
  UnfinishedMessages messages(3);
  for (const uint32_t stream : {1, 3, 5}) messages.Begin(stream);
  messages.Receive(1, Message(500).substr(0, 105));
  messages.Receive(5, Message(500).substr(0, 205));
  EXPECT_EQ(messages.NewestHolding(0), 0);
  EXPECT_EQ(messages.NewestHolding(200), 1);
  EXPECT_EQ(messages.NewestHolding(201), 2);
  EXPECT_EQ(messages.NewestHolding(1000), 2);
}

}  // namespace unfinished_messages_test
}  // namespace attendant::server
