#include "server/admission/unfinished_bodies.h"

#include <gtest/gtest.h>

#include <map>

namespace attendant::server {
namespace unfinished_bodies_test {

using AwaitedItem = UnfinishedBodies::AwaitedItem;
using Body = UnfinishedBodies::Body;
constexpr int64_t kWindow = UnfinishedBodies::kFirstWindow;

class UnfinishedBodiesTest : public ::testing::Test {
 protected:
  UnfinishedBodiesTest() {
    bodies_.Watch([this](const std::string& connection) -> std::optional<int64_t> {
      const auto found = received_.find(connection);
      if (found == received_.end()) return std::nullopt;
      return found->second;
    });
  }

  std::map<std::string, int64_t> received_ = {{"a", 1000}, {"b", 0}};
  UnfinishedBodies bodies_;
};

TEST_F(UnfinishedBodiesTest, ABodyAloneHasWhatItsConnectionHasReceived) {
  const std::unique_ptr<Body> body = bodies_.Begin("a", kWindow);
  EXPECT_EQ(body->Measure(), kWindow);
  received_["a"] += 300;
  received_["b"] += 5000;
  EXPECT_EQ(body->Measure(), kWindow + 300);
  body->Charge(kWindow + 300);
  EXPECT_EQ(body->Measure(), kWindow + 300);
}

TEST_F(UnfinishedBodiesTest, EveryByteIsChargedToSomeBody) {
  const std::unique_ptr<Body> first = bodies_.Begin("a", kWindow),
                              second = bodies_.Begin("a", kWindow);
  received_["a"] += 300;
  EXPECT_EQ(second->Measure(), kWindow + 300);
  second->Charge(kWindow + 300);
  EXPECT_EQ(first->Measure(), kWindow);
  received_["a"] += 50;
  EXPECT_EQ(first->Measure(), kWindow + 50);
}

TEST_F(UnfinishedBodiesTest, WhatCameWholeIsCountedNoMore) {
  const std::unique_ptr<Body> slow = bodies_.Begin("a", kWindow),
                              quick = bodies_.Begin("a", kWindow);
  received_["a"] += 300;
  quick->Finish(200);
  EXPECT_EQ(slow->Measure(), kWindow + 100);
  received_["a"] += 40;
  AwaitedItem(bodies_, "a").Finish(40);
  EXPECT_EQ(slow->Measure(), kWindow + 100);
}

// How much of the older body came before the younger one began is not known.
TEST_F(UnfinishedBodiesTest, WhatAnOlderBodyHadCountsUntilTheYoungerOnesHaveEnded) {
  const std::unique_ptr<Body> older = bodies_.Begin("a", kWindow);
  received_["a"] += 100;
  std::unique_ptr<Body> younger = bodies_.Begin("a", kWindow);
  received_["a"] += 100;
  older->Finish(200);
  EXPECT_EQ(younger->Measure(), kWindow + 100);
  younger = bodies_.Begin("a", kWindow);
  EXPECT_EQ(younger->Measure(), kWindow);
}

TEST_F(UnfinishedBodiesTest, ABodyThatIsGivenUpIsForgotten) {
  std::unique_ptr<Body> first = bodies_.Begin("a", kWindow);
  const std::unique_ptr<Body> second = bodies_.Begin("a", kWindow);
  received_["a"] += 100;
  first->Charge(kWindow + 100);
  EXPECT_EQ(second->Measure(), kWindow);
  first.reset();
  EXPECT_EQ(second->Measure(), kWindow + 100);
}

TEST_F(UnfinishedBodiesTest, AnItemIsComparedWithWhatItsStreamIsChargedWith) {
  AwaitedItem item(bodies_, "a");
  received_["a"] += 300;
  EXPECT_EQ(item.Unexplained(), 0);
  item.Begin(200);
  received_["a"] += 150;
  received_["b"] += 5000;
  EXPECT_EQ(item.Unexplained(), 0);
  received_["a"] += 150;
  EXPECT_EQ(item.Unexplained(), 100);
  item.Finish(300);
  EXPECT_EQ(item.Unexplained(), 0);
  item.Begin(200);
  received_["a"] += 201;
  EXPECT_EQ(item.Unexplained(), 1);
}

TEST_F(UnfinishedBodiesTest, MessagesOfTheConnectionExplainWhatItHasReceived) {
  AwaitedItem idle(bodies_, "a"), other(bodies_, "a");
  idle.Begin(100);
  other.Begin(100);
  received_["a"] += 300;
  other.Finish(300);
  EXPECT_EQ(idle.Unexplained(), 0);
  const std::unique_ptr<Body> body = bodies_.Begin("a", 50);
  received_["a"] += 400;
  body->Finish(400);
  EXPECT_EQ(idle.Unexplained(), 0);
  received_["a"] += 101;
  EXPECT_EQ(idle.Unexplained(), 1);
}

TEST_F(UnfinishedBodiesTest, UnfinishedBodiesExplainWhatTheyAreChargedWith) {
  AwaitedItem item(bodies_, "a");
  item.Begin(100);
  std::unique_ptr<Body> body = bodies_.Begin("a", 50);
  received_["a"] += 400;
  EXPECT_EQ(item.Unexplained(), 250);
  body->Charge(300);
  EXPECT_EQ(item.Unexplained(), 0);
  body.reset();
  EXPECT_EQ(item.Unexplained(), 300) << "nobody knows that these bytes were the body's";
}

TEST_F(UnfinishedBodiesTest, AnItemChangesNothingOfWhatBodiesAreChargedWith) {
  AwaitedItem item(bodies_, "a");
  item.Begin(0);
  received_["a"] += 300;
  const std::unique_ptr<Body> body = bodies_.Begin("a", kWindow);
  EXPECT_EQ(body->Measure(), kWindow);
}

TEST_F(UnfinishedBodiesTest, NothingIsKnownOfOtherConnections) {
  AwaitedItem item(bodies_, "c");
  item.Begin(0);
  EXPECT_EQ(item.Unexplained(), 0);
  received_["c"] = 100;
  EXPECT_EQ(item.Unexplained(), 0);
  received_["d"] = 0;
  AwaitedItem closed(bodies_, "d");
  closed.Begin(0);
  received_.erase("d");
  EXPECT_EQ(closed.Unexplained(), 0);
  EXPECT_EQ(bodies_.Begin("e", kWindow)->Measure(), std::nullopt);
  UnfinishedBodies unwatched;
  EXPECT_EQ(unwatched.Begin("a", kWindow)->Measure(), std::nullopt);
}

}  // namespace unfinished_bodies_test
}  // namespace attendant::server
