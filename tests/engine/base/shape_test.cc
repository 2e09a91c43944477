#include "engine/base/shape.h"

#include <gtest/gtest.h>

#include <limits>

namespace attendant {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(ElementCount, MultipliesDimensions) { EXPECT_EQ(ElementCount({2, 3, 4}), 24); }
TEST(ElementCount, ScalarHasOneElement) { EXPECT_EQ(ElementCount({}), 1); }
TEST(ElementCount, ZeroDimensionIsEmpty) { EXPECT_EQ(ElementCount({5, 0}), 0); }
TEST(ElementCount, RefusesNegative) { EXPECT_EQ(ElementCount({2, -1}), std::nullopt); }
TEST(ElementCount, RefusesOverflow) { EXPECT_EQ(ElementCount({kMax, 2}), std::nullopt); }
TEST(ElementCount, ZeroDoesNotHideOverflow) {
  EXPECT_EQ(ElementCount({0, kMax, kMax}), std::nullopt);
}
TEST(CheckedMultiply, RefusesOverflow) {
  EXPECT_EQ(CheckedMultiply(kMax, 1), kMax);
  EXPECT_EQ(CheckedMultiply(kMax / 2 + 1, 2), std::nullopt);
}
TEST(ShapeToString, ListsDimensions) {
  EXPECT_EQ(ShapeToString({2, 3}), "[2, 3]");
  EXPECT_EQ(ShapeToString({}), "[]");
}

}  // namespace
}  // namespace attendant
