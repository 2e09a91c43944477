#include "server/cache/cache_key.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace attendant::server {
namespace cache_key_test {

std::string Numbers(const std::vector<int32_t>& numbers) {
  KeySource source;
  source.AddNumbers(numbers);
  return source.bytes();
}

std::string Texts(const std::vector<std::string>& texts) {
  KeySource source;
  for (const std::string& text : texts) source.AddText(text);
  return source.bytes();
}

TEST(KeySourceTest, TellsFieldsApart) {
  EXPECT_NE(Texts({"ab", "c"}), Texts({"a", "bc"}));
  EXPECT_NE(Texts({"", "a"}), Texts({"a", ""}));
  EXPECT_EQ(Texts({"ab", "c"}), Texts({"ab", "c"}));
}

TEST(KeySourceTest, TellsNumbersApartInEveryForm) {
  const std::vector<std::vector<int32_t>> lists = {
      {},           {0},       {1},         {-1},        {0, 0},
      {0, 0, 0},    {1, 1, 1}, {0, 1, 2},   {1, 2, 3},   {0, 1, 2, 3},
      {0, 1, 2, 4}, {2, 1, 0}, {5, 7, 9},   {-1, 0, 1},  {0, 1},
      {1, 0},       {0, 0, 1}, {INT32_MAX}, {INT32_MIN}, {INT32_MAX, INT32_MIN}};
  std::set<std::string> seen;
  for (const std::vector<int32_t>& list : lists) {
    EXPECT_TRUE(seen.insert(Numbers(list)).second) << ::testing::PrintToString(list);
    EXPECT_EQ(Numbers(list), Numbers(list));
  }
}

TEST(KeySourceTest, IsShortForPositionsAndTypes) {
  std::vector<int32_t> positions;
  for (int32_t i = 0; i < 512; ++i) positions.push_back(i + 2);
  EXPECT_LE(Numbers(positions).size(), 32u);
  EXPECT_LE(Numbers(std::vector<int32_t>(512)).size(), 32u);
}

TEST(KeySourceTest, HasBytesThatAreWrittenLaterAndIsCut) {
  KeySource source;
  source.Add(7);
  const std::string before = source.bytes();
  std::memcpy(source.AddBytes(3), "abc", 3);
  KeySource same;
  same.Add(7);
  same.AddText("abc");
  EXPECT_EQ(source.bytes(), same.bytes());
  source.Truncate(before.size());
  EXPECT_EQ(source.bytes(), before);
}

TEST(KeyMakerTest, MakesAKeyOfEachSource) {
  const KeyMaker maker;
  std::set<CacheKey> keys;
  std::string source;
  for (int i = 0; i < 1000; ++i, source.push_back('x')) keys.insert(maker.Make(source));
  EXPECT_EQ(keys.size(), 1000u);
  EXPECT_EQ(maker.Make("a text"), maker.Make("a text"));
}

TEST(KeyMakerTest, HasASecretOfItsOwn) {
  EXPECT_NE(KeyMaker().Make("a text"), KeyMaker().Make("a text"));
}

}  // namespace cache_key_test
}  // namespace attendant::server
