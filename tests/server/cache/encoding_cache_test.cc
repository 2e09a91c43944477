#include "server/cache/encoding_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace attendant::server {
namespace encoding_cache_test {

using ::testing::ElementsAre;

class EncodingCacheTest : public ::testing::Test {
 protected:
  static text::EncodeOptions Options() {
    text::EncodeOptions options;
    options.max_length = 8;
    options.places = false;
    return options;
  }
  static text::Encoding Tokens() {
    text::Encoding tokens;
    tokens.ids = {2, 70000, 3};
    tokens.type_ids = {0, 1, 1};
    tokens.text_of = {2, 0, 2};
    tokens.truncated = true;
    return tokens;
  }

  EncodingCache Of(const std::string& client = "a", int64_t tokenizer = 1,
                   const std::string& prompt = "", const text::EncodeOptions& options = Options()) {
    return EncodingCache(&results_, client, tokenizer, prompt, options);
  }

  static void Fill(EncodingCache cache, const std::string* pair = nullptr) {
    EXPECT_FALSE(cache.Find("text", pair));
    cache.Keep(Tokens());
  }

  ResultCache results_{int64_t{1} << 20};
};

TEST_F(EncodingCacheTest, ReturnsWhatWasKept) {
  Fill(Of());
  const std::optional<text::Encoding> found = Of().Find("text", nullptr);
  ASSERT_TRUE(found);
  EXPECT_THAT(found->ids, ElementsAre(2, 70000, 3));
  EXPECT_THAT(found->type_ids, ElementsAre(0, 1, 1));
  EXPECT_THAT(found->text_of, ElementsAre(2, 0, 2));
  EXPECT_TRUE(found->truncated);
  EXPECT_TRUE(found->bytes.empty());
  EXPECT_EQ(results_.counts().lookups[1].hits, 1);
}

TEST_F(EncodingCacheTest, KeepsTextsWithoutTokens) {
  EncodingCache cache = Of();
  EXPECT_FALSE(cache.Find("", nullptr));
  cache.Keep({});
  const std::optional<text::Encoding> found = cache.Find("", nullptr);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->ids.empty());
  EXPECT_FALSE(found->truncated);
}

TEST_F(EncodingCacheTest, TellsApartAllThatTokensDependOn) {
  const std::string pair = "pair", other = "other";
  Fill(Of());
  EXPECT_FALSE(Of("b").Find("text", nullptr));
  EXPECT_FALSE(Of("a", 2).Find("text", nullptr));
  EXPECT_FALSE(Of("a", 1, "query: ").Find("text", nullptr));
  text::EncodeOptions longer = Options(), left = Options(), bare = Options();
  longer.max_length = 9;
  left.truncation_side = text::TruncationSide::kLeft;
  bare.add_special_tokens = false;
  for (const text::EncodeOptions& options : {longer, left, bare}) {
    EXPECT_FALSE(Of("a", 1, "", options).Find("text", nullptr));
  }
  EXPECT_FALSE(Of().Find("texts", nullptr));
  EXPECT_FALSE(Of().Find("text", &pair));
  Fill(Of(), &pair);
  EXPECT_FALSE(Of().Find("text", &other));
  EXPECT_FALSE(Of().Find("textp", nullptr));
  EXPECT_TRUE(Of().Find("text", &pair));
}

TEST_F(EncodingCacheTest, DoesWithoutACacheAndWithPlaces) {
  text::EncodeOptions places = Options();
  places.places = true;
  EncodingCache without(nullptr, "a", 1, "", Options());
  for (EncodingCache cache : {without, Of("a", 1, "", places)}) {
    EXPECT_FALSE(cache.Find("text", nullptr));
    cache.Keep(Tokens());
    EXPECT_FALSE(cache.Find("text", nullptr));
  }
  EXPECT_EQ(results_.counts().entries, 0);
}

TEST_F(EncodingCacheTest, DoesNotKeepTypesThatDoNotFitAByte) {
  EncodingCache cache = Of();
  EXPECT_FALSE(cache.Find("text", nullptr));
  text::Encoding tokens = Tokens();
  tokens.type_ids[1] = 256;
  cache.Keep(tokens);
  EXPECT_FALSE(cache.Find("text", nullptr));
}

}  // namespace encoding_cache_test
}  // namespace attendant::server
