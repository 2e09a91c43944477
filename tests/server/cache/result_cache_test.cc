#include "server/cache/result_cache.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace attendant::server {
namespace result_cache_test {

constexpr int64_t kEntry = ResultCache::kEntryBytes + 10;  // with a result of 10 bytes

class ResultCacheTest : public ::testing::Test {
 protected:
  CacheKey Key(int64_t number) const {
    KeySource source;
    source.Add(number);
    return cache_.KeyOf(source);
  }
  void Add(int64_t number, size_t bytes = 10) {
    cache_.Add(Key(number), std::make_shared<const std::string>(bytes, 'a'));
  }
  bool Has(int64_t number) { return cache_.Find(CacheKind::kVectors, Key(number)) != nullptr; }

  ResultCache cache_{3 * kEntry};
};

TEST_F(ResultCacheTest, FindsWhatItWasGiven) {
  EXPECT_FALSE(Has(1));
  cache_.Add(Key(1), std::make_shared<const std::string>("result"));
  EXPECT_EQ(*cache_.Find(CacheKind::kVectors, Key(1)), "result");
  cache_.Add(Key(1), std::make_shared<const std::string>("another"));
  EXPECT_EQ(*cache_.Find(CacheKind::kVectors, Key(1)), "result");
  EXPECT_EQ(cache_.counts().entries, 1);
  EXPECT_EQ(cache_.counts().bytes, ResultCache::kEntryBytes + 6);
}

TEST_F(ResultCacheTest, DropsThoseNotUsedForLongest) {
  for (const int64_t number : {1, 2, 3}) Add(number);
  EXPECT_EQ(cache_.counts().bytes, 3 * kEntry);
  EXPECT_TRUE(Has(1));
  Add(4);
  EXPECT_FALSE(Has(2));
  for (const int64_t number : {1, 3, 4}) EXPECT_TRUE(Has(number)) << number;
  EXPECT_EQ(cache_.counts().entries, 3);
  EXPECT_EQ(cache_.counts().bytes, 3 * kEntry);
}

TEST_F(ResultCacheTest, DropsAsManyAsALargeOneNeeds) {
  for (const int64_t number : {1, 2, 3}) Add(number);
  Add(4, 10 + kEntry);
  for (const int64_t number : {1, 2}) EXPECT_FALSE(Has(number)) << number;
  for (const int64_t number : {3, 4}) EXPECT_TRUE(Has(number)) << number;
  EXPECT_EQ(cache_.counts().bytes, 3 * kEntry);
}

TEST_F(ResultCacheTest, KeepsNoneThatIsLargerThanAll) {
  Add(1);
  Add(2, 10 + 2 * kEntry);
  EXPECT_TRUE(Has(2));
  EXPECT_FALSE(Has(1));
  Add(3, 11 + 2 * kEntry);
  EXPECT_FALSE(Has(3));
  EXPECT_TRUE(Has(2));
}

TEST_F(ResultCacheTest, WhatWasFoundOutlivesItsEntry) {
  Add(1);
  const ResultCache::Result found = cache_.Find(CacheKind::kVectors, Key(1));
  for (const int64_t number : {2, 3, 4}) Add(number);
  EXPECT_FALSE(Has(1));
  EXPECT_EQ(*found, std::string(10, 'a'));
}

TEST_F(ResultCacheTest, CountsEachKind) {
  Add(1);
  EXPECT_TRUE(Has(1));
  EXPECT_TRUE(Has(1));
  EXPECT_FALSE(Has(2));
  cache_.Find(CacheKind::kTokens, Key(3));
  const CacheCounts counts = cache_.counts();
  EXPECT_EQ(counts.lookups[0].hits, 2);
  EXPECT_EQ(counts.lookups[0].misses, 1);
  EXPECT_EQ(counts.lookups[1].hits, 0);
  EXPECT_EQ(counts.lookups[1].misses, 1);
}

TEST_F(ResultCacheTest, TakesSeveralThreads) {
  std::vector<std::thread> threads;
  for (int64_t first : {0, 2, 4}) {
    threads.emplace_back([this, first] {
      for (int64_t i = 0; i < 1000; ++i) {
        Add(first + i % 5);
        Has(i % 7);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const CacheCounts counts = cache_.counts();
  EXPECT_EQ(counts.entries, 3);
  EXPECT_EQ(counts.bytes, 3 * kEntry);
  EXPECT_EQ(counts.lookups[0].hits + counts.lookups[0].misses, 3000);
}

TEST(ResultCacheMakeTest, MakesNoneOfNoBytes) {
  EXPECT_EQ(ResultCache::Make(0), nullptr);
  EXPECT_NE(ResultCache::Make(1), nullptr);
}

}  // namespace result_cache_test
}  // namespace attendant::server
