#include "engine/base/spelling.h"

#include <gtest/gtest.h>

namespace attendant {
namespace spelling_test {

TEST(SpellingDistanceTest, CountsLetters) {
  EXPECT_EQ(SpellingDistance("", ""), 0u);
  EXPECT_EQ(SpellingDistance("bert", "bert"), 0u);
  EXPECT_EQ(SpellingDistance("", "bert"), 4u);
  EXPECT_EQ(SpellingDistance("albert", "bert"), 2u);
  EXPECT_EQ(SpellingDistance("kitten", "sitting"), 3u);
}

}  // namespace spelling_test
}  // namespace attendant
