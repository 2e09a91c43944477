// Tests of the cache of results, through the APIs over HTTP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/security/reloaded.h"
#include "tests/server/text_calls/text_fixture.h"

namespace attendant::server {
namespace text_cache_test {

TestServerOptions Serving(int64_t cache_bytes = int64_t{1} << 20) {
  TestServerOptions options = TextFixture::Serving();
  options.cache_bytes = cache_bytes;
  return options;
}

class TextCacheTest : public ::testing::Test {
 protected:
  // Expects the answer of a server without a cache, and returns how many sequences were found.
  int64_t Hits(const std::string& path, const Json& body, const std::string& headers = "") {
    return Hits(rest_, path, body, headers);
  }
  int64_t Hits(TextFixture& rest, const std::string& path, const Json& body,
               const std::string& headers = "") {
    const int64_t before = Lookups(rest, CacheKind::kVectors).hits;
    const RestResult result = rest.Ask(path, body, headers);
    EXPECT_EQ(result.status, 200) << result.body;
    EXPECT_EQ(result.body, plain_.Ask(path, body).body);
    return Lookups(rest, CacheKind::kVectors).hits - before;
  }
  static CacheCounts::Lookups Lookups(TextFixture& rest, CacheKind kind) {
    return rest.server().cache().counts().lookups[static_cast<size_t>(kind)];
  }

  TextFixture rest_{Serving()}, plain_{Serving(0)};
};

TEST_F(TextCacheTest, HasTheVectorsOfTexts) {
  EXPECT_EQ(Hits("/v1/embeddings", {{"input", {"w10 w11", "w12"}}}), 0);
  EXPECT_EQ(Hits("/v1/embeddings", {{"input", {"w12", "w13 w14 w15", "w10 w11"}}}), 2);
  EXPECT_EQ(Hits("/v1/embeddings", {{"input", {"w12", "w13 w14 w15", "w10 w11"}}}), 3);
  EXPECT_EQ(rest_.server().gate().passed(), 2);
  EXPECT_EQ(Lookups(rest_, CacheKind::kTokens).hits, 5);
  EXPECT_EQ(Lookups(rest_, CacheKind::kTokens).misses, 3);
  // Another API, and its own form of the answer.
  EXPECT_EQ(Hits("/embed", {{"inputs", "w12"}}), 1);
  EXPECT_EQ(Hits("/v1/embeddings", {{"input", "w12"}, {"encoding_format", "base64"}}), 1);
}

// They are cut from the same vector.
TEST_F(TextCacheTest, HasVectorsOfAllDimensions) {
  const auto with = [](int dimensions) {
    return Json{{"input", "w10 w11"}, {"dimensions", dimensions}};
  };
  EXPECT_EQ(Hits("/v1/embeddings", with(8)), 0);
  EXPECT_EQ(Hits("/v1/embeddings", with(16)), 1);
  EXPECT_EQ(Hits("/v1/embeddings", with(32)), 1);
  EXPECT_EQ(Hits("/v1/embeddings", with(8)), 1);
}

TEST_F(TextCacheTest, KeepsPromptsAndNormalizationApart) {
  const std::string path = "/models/tiny/embed";
  EXPECT_EQ(Hits(path, {{"inputs", "w10"}}), 0);
  EXPECT_EQ(Hits(path, {{"inputs", "w10"}, {"normalize", false}}), 0);
  EXPECT_EQ(Hits(path, {{"inputs", "w10"}, {"prompt_name", "query"}}), 0);
  EXPECT_EQ(Hits(path, {{"inputs", "w10"}, {"prompt_name", "document"}}), 0);
  EXPECT_EQ(Hits(path, {{"inputs", "w10"}, {"prompt_name", "query"}}), 1);
}

TEST_F(TextCacheTest, HasScoresAndSparseVectors) {
  const Json ranked = {{"query", "w11"}, {"texts", {"w48", "w7 w8"}}};
  EXPECT_EQ(Hits("/models/ranker/rerank", ranked), 0);
  EXPECT_EQ(Hits("/models/ranker/rerank", ranked), 2);
  EXPECT_EQ(Hits("/models/classes/predict", {{"inputs", "w11"}}), 0);
  EXPECT_EQ(Hits("/models/classes/predict", {{"inputs", "w11"}}), 1);
  EXPECT_EQ(Hits("/models/words/embed_sparse", {{"inputs", "w11"}}), 0);
  EXPECT_EQ(Hits("/models/words/embed_sparse", {{"inputs", {"w12", "w11"}}}), 1);
}

TEST_F(TextCacheTest, IsThatOfModelInferAndOfGrpc) {
  EXPECT_EQ(Hits("/v1/embeddings", {{"input", "w10 w11"}}), 0);
  v1::EncodeRequest request;
  request.set_model("tiny");
  request.add_texts("w10 w11");
  request.set_omit_hidden_states(true);
  request.set_return_pooled(true);
  request.set_normalize_pooled(true);
  v1::EncodeResponse response;
  ASSERT_TRUE(rest_.server().Encode(request, &response).ok());
  EXPECT_EQ(response.execution().cached_sequences(), 1);
  const Json body = {
      {"inputs",
       {{{"name", "text"}, {"shape", {2}}, {"datatype", "BYTES"}, {"data", {"w10", "w12"}}}}},
      {"outputs", {{{"name", "sentence_embedding"}}}}};
  EXPECT_EQ(Hits("/v2/models/tiny/infer", body), 0);
  EXPECT_EQ(Hits("/v2/models/tiny/infer", body), 2);
}

// Several parts, of which each may be known in part.
TEST_F(TextCacheTest, HasPartsOfLongCalls) {
  Json texts = Json::array();
  for (int i = 0; i < 80; ++i) texts.push_back(Words(1 + i / 10, 10 + i % 80));
  EXPECT_EQ(Hits("/v1/embeddings", {{"input", texts}}), 0);
  EXPECT_EQ(Hits("/v1/embeddings", {{"input", texts}}), 80);
  for (int i = 0; i < 80; i += 2) texts[i] = Words(9, 10 + i);
  EXPECT_EQ(Hits("/v1/embeddings", {{"input", texts}}), 40);
}

TEST_F(TextCacheTest, KeepsTokensApart) {
  // The SHA-256 of "test" and of "other".
  const auto tokens = *Reloaded<Tokens>::Load({}, [](const std::vector<std::string>&) {
    return Tokens::Parse(
        "infer 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n"
        "infer d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa");
  });
  const ServerSecrets secrets = {.certificates = nullptr, .tokens = tokens.get()};
  TextFixture rest(Serving(), TextFixture::Limits(), secrets);
  const Json body = {{"input", "w10 w11"}};
  const std::string test = "Authorization: Bearer test\r\n";
  const std::string other = "Authorization: Bearer other\r\n";
  EXPECT_EQ(Hits(rest, "/v1/embeddings", body, test), 0);
  EXPECT_EQ(Hits(rest, "/v1/embeddings", body, other), 0);
  EXPECT_EQ(Lookups(rest, CacheKind::kTokens).hits, 0);
  EXPECT_EQ(Hits(rest, "/v1/embeddings", body, test), 1);
  EXPECT_EQ(Hits(rest, "/v1/embeddings", body, other), 1);
  EXPECT_EQ(rest.server().gate().passed(), 2);
}

}  // namespace text_cache_test
}  // namespace attendant::server
