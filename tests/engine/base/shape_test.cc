#include "engine/base/shape.h"

#include <gtest/gtest.h>

#include <limits>

namespace attendant {
namespace shape_test {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(ElementCount, MultipliesDimensions) { EXPECT_EQ(ElementCount({2, 3, 4}), 24); }
TEST(ElementCount, ScalarHasOneElement) { EXPECT_EQ(ElementCount({}), 1); }
TEST(ElementCount, ZeroDimensionIsEmpty) { EXPECT_EQ(ElementCount({5, 0}), 0); }
TEST(ElementCount, RefusesNegative) { EXPECT_EQ(ElementCount({2, -1}), std::nullopt); }
TEST(ElementCount, RefusesOverflow) { EXPECT_EQ(ElementCount({kMax, 2}), std::nullopt); }
TEST(ElementCount, ZeroDoesNotHideOverflow) {
  EXPECT_EQ(ElementCount({0, kMax, kMax}), std::nullopt);
}
TEST(ByteCount, RefusesOverflow) {
  EXPECT_EQ(ByteCount({2, 3}, DataType::kFloat32).value(), 24);
  EXPECT_EQ(ByteCount({kMax}, DataType::kInt8).value(), kMax);
  EXPECT_FALSE(ByteCount({kMax / 2 + 1}, DataType::kFloat16).ok());
  EXPECT_FALSE(ByteCount({2, -1}, DataType::kInt8).ok());
}
TEST(ShapeToString, ListsDimensions) {
  EXPECT_EQ(ShapeToString({2, 3}), "[2, 3]");
  EXPECT_EQ(ShapeToString({}), "[]");
}

}  // namespace shape_test
}  // namespace attendant
