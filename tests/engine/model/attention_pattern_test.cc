#include "engine/model/attention_pattern.h"

#include "gmock/gmock.h"

namespace attendant {
namespace attention_pattern_test {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr BlockPair kFirst = {2, 7}, kSecond = {3, 0}, kThird = {3, 5}, kFourth = {9, 1};

TEST(BlockListsTest, ListNoneByDefault) {
  const BlockLists none;
  EXPECT_THAT(none.pairs(), IsEmpty());
  EXPECT_THAT(none.globals(), IsEmpty());
  EXPECT_THAT(none.Between({0, 0}, {100, 0}), IsEmpty());
  EXPECT_FALSE(none.HasGlobal(0, 100));
  EXPECT_EQ(none, BlockLists({}, {}));
}

TEST(BlockListsTest, AreInOrder) {
  const BlockLists lists({kFourth, kThird, kFirst, kSecond}, {5, 2});
  EXPECT_THAT(lists.pairs(), ElementsAre(kFirst, kSecond, kThird, kFourth));
  EXPECT_THAT(lists.globals(), ElementsAre(2, 5));
}

TEST(BlockListsTest, FindPairsAndGlobalsInARange) {
  const BlockLists lists({kFirst, kSecond, kThird, kFourth}, {2, 5});
  EXPECT_THAT(lists.Between({3, 0}, {4, 0}), ElementsAre(kSecond, kThird));
  EXPECT_THAT(lists.Between({3, 1}, {4, 0}), ElementsAre(kThird));
  EXPECT_THAT(lists.Between({3, 6}, {4, 0}), IsEmpty());
  EXPECT_THAT(lists.Between({0, 0}, {100, 0}), ElementsAre(kFirst, kSecond, kThird, kFourth));
  EXPECT_THAT(lists.Between({-5, 0}, {-4, 0}), IsEmpty());
  EXPECT_TRUE(lists.HasGlobal(2, 2));
  EXPECT_TRUE(lists.HasGlobal(3, 5));
  EXPECT_FALSE(lists.HasGlobal(3, 4));
  EXPECT_FALSE(lists.HasGlobal(6, 100));
}

TEST(BlockListsTest, CopiesShareWhatTheyHoldAndEqualsAreByIt) {
  const BlockLists lists({kFirst, kSecond}, {5});
  const BlockLists copy = lists;  // NOLINT: the copy is what is tested
  EXPECT_EQ(copy.pairs().data(), lists.pairs().data());
  EXPECT_EQ(copy, BlockLists({kSecond, kFirst}, {5}));
  EXPECT_NE(copy, BlockLists({kSecond, kFirst}));
  EXPECT_NE(copy, BlockLists({kFirst}, {5}));
  EXPECT_NE(AttentionPattern{.listed = lists}, AttentionPattern());
}

}  // namespace attention_pattern_test
}  // namespace attendant
