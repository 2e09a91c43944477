#include "server/http/http_connections.h"

#include <chrono>
#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/metrics/refusal.h"

namespace attendant::server {
namespace http_connections_test {

using ::testing::Optional;

using Phase = HttpConnection::Phase;

HttpConnection::TimePoint At(int seconds) {
  return HttpConnection::TimePoint(std::chrono::seconds(seconds));
}

// A connection of four places, in a phase since a second.
HttpConnection& Add(HttpConnections& open, int descriptor, const std::string& address, Phase phase,
                    int since) {
  HttpConnection& added = open.Add({descriptor, address});
  added.Enter(phase, At(since));
  return added;
}

int InTheWay(const HttpConnections& open, const std::string& address) {
  const HttpConnection* found = open.InTheWayOf(address);
  return found == nullptr ? 0 : found->descriptor;
}

TEST(HttpConnectionsTest, NoneIsInTheWayWhileThereIsRoom) {
  HttpConnections open({.connections = 2});
  EXPECT_EQ(InTheWay(open, "a"), 0);
  Add(open, 11, "a", Phase::kIdle, 0);
  EXPECT_EQ(InTheWay(open, "a"), 0);
  Add(open, 12, "a", Phase::kIdle, 0).closing = true;
  EXPECT_EQ(InTheWay(open, "a"), 0);
  Add(open, 13, "a", Phase::kIdle, 0);
  EXPECT_EQ(InTheWay(open, "b"), 11);
  open.Remove(13);
  open.Remove(13);
  EXPECT_EQ(InTheWay(open, "b"), 0);
}

TEST(HttpConnectionsTest, TheOneThatIsIdleLongestMakesRoom) {
  HttpConnections open({.connections = 3});
  Add(open, 11, "a", Phase::kBrief, 0);
  Add(open, 12, "a", Phase::kIdle, 5);
  Add(open, 13, "a", Phase::kIdle, 3);
  EXPECT_EQ(InTheWay(open, "a"), 13);
  open.Remove(13);
  Add(open, 14, "a", Phase::kBrief, 1);
  EXPECT_EQ(InTheWay(open, "a"), 12);
  open.Remove(12);
  Add(open, 15, "a", Phase::kBrief, 2);
  EXPECT_EQ(InTheWay(open, "a"), 11);
}

TEST(HttpConnectionsTest, TheAddressWithTheMostMakesRoom) {
  HttpConnections open({.connections = 4});
  Add(open, 10, "b", Phase::kIdle, 0);
  Add(open, 11, "a", Phase::kBrief, 1);
  Add(open, 12, "a", Phase::kBrief, 2);
  Add(open, 13, "c", Phase::kIdle, 3);
  EXPECT_EQ(InTheWay(open, "a"), 11);
  EXPECT_EQ(InTheWay(open, "d"), 11);
  EXPECT_EQ(InTheWay(open, "b"), 10);  // which would have as many as the other one
}

TEST(HttpConnectionsTest, ACallMakesNoRoom) {
  HttpConnections open({.connections = 3});
  Add(open, 11, "a", Phase::kReceiving, 0);
  Add(open, 12, "a", Phase::kWaiting, 0);
  Add(open, 13, "b", Phase::kIdle, 9);
  EXPECT_EQ(InTheWay(open, "a"), 13);
}

TEST(HttpConnectionsTest, AnAddressHasSevenOfEightPlacesForCalls) {
  HttpConnections open({.calls = 8});
  for (int i = 0; i < 7; ++i) {
    EXPECT_TRUE(open.CheckRoomForCall("a").ok());
    Add(open, i, "a", Phase::kSending, 0);
  }
  EXPECT_EQ(ReasonOf(open.CheckRoomForCall("a")), "peer_share");
  EXPECT_TRUE(open.CheckRoomForCall("b").ok());
  HttpConnection& last = Add(open, 7, "b", Phase::kSending, 0);
  EXPECT_EQ(ReasonOf(open.CheckRoomForCall("c")), "slots");
  last.Enter(Phase::kIdle);
  EXPECT_TRUE(open.CheckRoomForCall("c").ok());
}

TEST(HttpConnectionsTest, EachPhaseHasItsTime) {
  HttpConnections open({.idle_timeout = absl::Seconds(75),
                        .brief_timeout = absl::Seconds(5),
                        .receive_timeout = absl::Seconds(10),
                        .min_receive_rate = 1000,
                        .send_timeout = absl::Seconds(30)});
  EXPECT_EQ(open.next_end(), std::nullopt);
  HttpConnection& connection = Add(open, 11, "a", Phase::kBrief, 100);
  EXPECT_THAT(open.next_end(), Optional(At(105)));
  connection.Enter(Phase::kIdle, At(100));
  EXPECT_THAT(open.next_end(), Optional(At(175)));
  connection.Enter(Phase::kReceiving, At(100));
  EXPECT_THAT(open.next_end(), Optional(At(110)));
  connection.received = 5000;
  EXPECT_THAT(open.next_end(), Optional(At(115)));
  connection.Enter(Phase::kWaiting, At(100));
  EXPECT_EQ(open.next_end(), std::nullopt);
  connection.Enter(Phase::kSending, At(100));
  EXPECT_THAT(open.next_end(), Optional(At(130)));
}

TEST(HttpConnectionsTest, TheTimeOfEachEndsOnce) {
  HttpConnections open({.brief_timeout = absl::Seconds(5)});
  HttpConnection& first = Add(open, 11, "a", Phase::kBrief, 0);
  HttpConnection& second = Add(open, 12, "a", Phase::kBrief, 1);
  EXPECT_THAT(open.next_end(), Optional(At(5)));
  EXPECT_EQ(open.Ended(At(4)), nullptr);
  EXPECT_EQ(open.Ended(At(5)), &first);
  first.closing = true;
  EXPECT_EQ(open.Ended(At(5)), nullptr);
  EXPECT_THAT(open.next_end(), Optional(At(6)));
  EXPECT_EQ(open.Ended(At(6)), &second);
}

}  // namespace http_connections_test
}  // namespace attendant::server
