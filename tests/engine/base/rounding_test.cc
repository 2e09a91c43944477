#include "engine/base/rounding.h"

#include <gtest/gtest.h>

namespace attendant {
namespace rounding_test {

TEST(CeilDivide, RoundsUp) {
  EXPECT_EQ(CeilDivide(0, 4), 0);
  EXPECT_EQ(CeilDivide(1, 4), 1);
  EXPECT_EQ(CeilDivide(4, 4), 1);
  EXPECT_EQ(CeilDivide(5, 4), 2);
}

TEST(RoundUp, GivesAMultiple) {
  EXPECT_EQ(RoundUp(0, 16), 0);
  EXPECT_EQ(RoundUp(1, 16), 16);
  EXPECT_EQ(RoundUp(32, 16), 32);
  EXPECT_EQ(RoundUp(33, 16), 48);
}

}  // namespace rounding_test
}  // namespace attendant
