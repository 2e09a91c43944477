#include "server/admission/awaited_messages.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace attendant::server {
namespace awaited_messages_test {

class AwaitedMessagesTest : public ::testing::Test {
 protected:
  using Place = std::unique_ptr<AwaitedMessages::Place>;

  Place Add(const std::string& caller) {
    const int number = ++added_;
    return messages_.Add(caller, [this, number] { given_up_.push_back(number); });
  }

  int added_ = 0;
  std::vector<int> given_up_;
  AwaitedMessages messages_{3};
};

TEST_F(AwaitedMessagesTest, TheCallerWithMostLosesItsOldest) {
  const Place rare = Add("a");
  const Place first = Add("b"), second = Add("b");
  EXPECT_TRUE(given_up_.empty());
  const Place third = Add("b");
  EXPECT_EQ(given_up_, std::vector<int>{2});
  const Place other = Add("c");
  EXPECT_EQ(given_up_, (std::vector<int>{2, 3}));
}

TEST_F(AwaitedMessagesTest, WhatHasArrivedMakesRoom) {
  Place first = Add("a");
  const Place second = Add("a"), third = Add("a");
  first.reset();
  const Place fourth = Add("a");
  EXPECT_TRUE(given_up_.empty());
  const Place fifth = Add("a");
  EXPECT_EQ(given_up_, std::vector<int>{2});
}

TEST_F(AwaitedMessagesTest, APlaceThatWasTakenAwayMayBeGivenBack) {
  Place first = Add("a");
  const Place second = Add("a"), third = Add("a"), fourth = Add("a");
  EXPECT_EQ(given_up_, std::vector<int>{1});
  first.reset();
  const Place fifth = Add("a");
  EXPECT_EQ(given_up_, (std::vector<int>{1, 2}));
}

// As the end of a call does.
TEST_F(AwaitedMessagesTest, GivingUpMayGiveThePlaceBack) {
  Place first;
  first = messages_.Add("a", [&first] { first.reset(); });
  const Place second = Add("a"), third = Add("a"), fourth = Add("a");
  EXPECT_EQ(first, nullptr);
  EXPECT_TRUE(given_up_.empty());
}

}  // namespace awaited_messages_test
}  // namespace attendant::server
