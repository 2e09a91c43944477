#include "server/http/http_connections.h"

#include <chrono>
#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attendant::server {
namespace http_connections_test {

using std::chrono::seconds;
using ::testing::Optional;

constexpr HttpConnections::TimePoint kStart;

TEST(HttpConnectionsTest, NoneIsInTheWayWhileThereIsRoom) {
  HttpConnections open(4, seconds(5));
  EXPECT_EQ(open.InTheWayOf("a"), std::nullopt);
  open.Add(11, "a", kStart);
  EXPECT_EQ(open.InTheWayOf("a"), std::nullopt);
  EXPECT_EQ(open.InTheWayOf("b"), std::nullopt);
}

TEST(HttpConnectionsTest, AnAddressWithHalfOfThemMakesRoomItself) {
  HttpConnections open(4, seconds(5));
  open.Add(10, "b", kStart);
  open.Add(11, "a", kStart);
  open.Add(12, "a", kStart);
  EXPECT_THAT(open.InTheWayOf("a"), Optional(11));
  EXPECT_EQ(open.InTheWayOf("b"), std::nullopt);
  open.Remove(11);
  EXPECT_EQ(open.InTheWayOf("a"), std::nullopt);
}

TEST(HttpConnectionsTest, TheOldestOfAllMakesRoomWhenAllAreTaken) {
  HttpConnections open(4, seconds(5));
  open.Add(11, "a", kStart);
  open.Add(12, "b", kStart);
  open.Add(13, "a", kStart);
  open.Add(14, "c", kStart);
  EXPECT_THAT(open.InTheWayOf("d"), Optional(11));
  EXPECT_THAT(open.InTheWayOf("b"), Optional(11));
  open.Remove(11);
  open.Add(15, "d", kStart);
  EXPECT_THAT(open.InTheWayOf("e"), Optional(12));
}

TEST(HttpConnectionsTest, EachAddressMayHaveOneOfTheFewest) {
  HttpConnections open(1, seconds(5));
  EXPECT_EQ(open.InTheWayOf("a"), std::nullopt);
  open.Add(11, "a", kStart);
  EXPECT_THAT(open.InTheWayOf("a"), Optional(11));
  EXPECT_THAT(open.InTheWayOf("b"), Optional(11));
}

TEST(HttpConnectionsTest, AConnectionEndsWithItsLifetime) {
  HttpConnections open(4, seconds(5));
  EXPECT_EQ(open.next_end(), std::nullopt);
  EXPECT_EQ(open.Ended(kStart), std::nullopt);
  open.Add(11, "a", kStart);
  open.Add(12, "a", kStart + seconds(1));
  EXPECT_THAT(open.next_end(), Optional(kStart + seconds(5)));
  EXPECT_EQ(open.Ended(kStart + seconds(4)), std::nullopt);
  EXPECT_THAT(open.Ended(kStart + seconds(5)), Optional(11));
  open.Remove(11);
  EXPECT_EQ(open.Ended(kStart + seconds(5)), std::nullopt);
  EXPECT_THAT(open.Ended(kStart + seconds(6)), Optional(12));
}

TEST(HttpConnectionsTest, RemovingTwiceRemovesNothingElse) {
  HttpConnections open(4, seconds(5));
  open.Add(11, "a", kStart);
  open.Add(12, "a", kStart + seconds(1));
  open.Remove(11);
  open.Remove(11);
  EXPECT_THAT(open.next_end(), Optional(kStart + seconds(6)));
}

}  // namespace http_connections_test
}  // namespace attendant::server
