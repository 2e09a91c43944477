// Tests of the text APIs with a model of late interaction that also makes vectors and sparse
// vectors of texts, as bge-m3 does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/server/text_calls/text_fixture.h"

namespace attendant::server {
namespace late_interaction_test {

using ::testing::DoubleNear;
using ::testing::HasSubstr;

constexpr int64_t kP = 6;

// "several" has all three heads and prompts for queries (w5) and documents (w6); "tiny" has none.
ServedModels Models() {
  ModelDescription model = TestModels().at("tiny")->encoder->description();
  model.pooling = {.modes = {PoolingMode::kFirstToken}, .normalize = true};
  model.lexical_head = {.modes = {},
                        .dense_width = 1,
                        .dense_activation = Activation::kRelu,
                        .excluded_ids = {0, 1, 2, 3}};
  model.token_head = {.modes = {}, .dense_width = kP, .normalize = true, .excludes_first = true};
  Tokenization tokenization;
  tokenization.prompts = {{"query", "w5 "}, {"document", "w6 "}};
  tokenization.is_multi_vector = true;
  auto several = std::make_shared<ServedModel>(*ModelOf("several", model).at("several"));
  several->tokenization = std::make_shared<const Tokenization>(std::move(tokenization));
  several->tokenizer = WordsTokenizer();
  return {{"several", several}, {"tiny", ModelsOfTexts().at("tiny")}};
}

class LateInteractionTest : public TextFixture, public ::testing::Test {
 protected:
  LateInteractionTest() : TextFixture(Serving(Models())) {}

  static Json Good(const RestResult& result) {
    EXPECT_EQ(result.status, 200) << result.body;
    return result.json();
  }

  v1::EncodeResponse Encode(const std::vector<int64_t>& ids, const std::string& task) {
    v1::EncodeRequest request;
    request.set_model("several");
    *request.mutable_token_ids() = IntegerTensor({1, static_cast<int64_t>(ids.size())}, ids);
    request.set_omit_hidden_states(true);
    request.set_return_token_vectors(true);
    request.set_return_sparse(true);
    request.set_return_pooled(true);
    request.set_task(task);
    v1::EncodeResponse response;
    EXPECT_TRUE(server().Encode(request, &response).ok());
    return response;
  }

  // The vectors of all tokens but the first.
  std::vector<float> VectorsOf(const std::vector<int64_t>& ids, const std::string& task) {
    std::vector<float> vectors = ToFloats(Encode(ids, task).token_vectors());
    vectors.erase(vectors.begin(), vectors.begin() + kP);
    return vectors;
  }

  double Score(const std::vector<int64_t>& query, const std::vector<int64_t>& document) {
    return MaxSimOf(VectorsOf(query, "query"), VectorsOf(document, "document"), kP);
  }
};

TEST_F(LateInteractionTest, RerankOfEachApiScoresByTheVectorsOfTokens) {
  const std::vector<double> expected = {Score({2, 5, 11, 12, 3}, {2, 6, 48, 3}),
                                        Score({2, 5, 11, 12, 3}, {2, 6, 7, 8, 3}),
                                        Score({2, 5, 11, 12, 3}, {2, 6, 11, 12, 3})};
  const Json documents = {"w48", "w7 w8", "w11 w12"};
  const Json of_tei = Good(Ask("/rerank", {{"query", "w11 w12"}, {"texts", documents}}));
  ASSERT_EQ(of_tei.size(), 3u);
  for (size_t place = 0; place < 3; ++place) {
    EXPECT_THAT(of_tei[place]["score"].get<double>(),
                DoubleNear(expected[of_tei[place]["index"].get<size_t>()], 1e-5));
    if (place > 0) {
      EXPECT_GE(of_tei[place - 1]["score"], of_tei[place]["score"]);
    }
  }
  for (const char* path : {"/v1/rerank", "/v2/rerank"}) {
    const Json answer =
        Good(Ask(path, {{"model", "several"}, {"query", "w11 w12"}, {"documents", documents}}));
    ASSERT_EQ(answer["results"].size(), 3u) << path;
    for (size_t place = 0; place < 3; ++place) {
      EXPECT_EQ(answer["results"][place]["index"], of_tei[place]["index"]);
      EXPECT_EQ(answer["results"][place]["relevance_score"], of_tei[place]["score"]);
    }
  }
  const Json jina = Good(
      Ask("/v1/rerank", {{"model", "several"}, {"query", "w11 w12"}, {"documents", documents}}));
  EXPECT_EQ(jina["usage"]["total_tokens"], 5 + 4 + 5 + 5);
}

// More documents than a part has, of which the query's vectors are waited for.
TEST_F(LateInteractionTest, ManyDocumentsAreScoredInParts) {
  Json documents = Json::array();
  for (int i = 0; i < 100; ++i) documents.push_back(Words(1 + i % 30, 10 + i % 80));
  const Json answer = Good(Ask("/rerank", {{"query", Words(9)}, {"texts", documents}}));
  ASSERT_EQ(answer.size(), 100u);
  for (const Json& one : answer) {
    const Json alone = Good(
        Ask("/rerank", {{"query", Words(9)}, {"texts", {documents[one["index"].get<size_t>()]}}}));
    EXPECT_EQ(alone[0]["score"], one["score"]);
  }
}

TEST_F(LateInteractionTest, ErrorsNameTheQueryOrTheDocument) {
  const Json cut = {{"query", Words(80)}, {"texts", {"w48"}}, {"truncate", false}};
  EXPECT_THAT(Ask("/rerank", cut).body, HasSubstr("query: expected at most 64 tokens"));
  const Json second = {{"query", "w48"}, {"texts", {"w48", Words(80)}}, {"truncate", false}};
  EXPECT_THAT(Ask("/rerank", second).body, HasSubstr("texts[1]: expected at most 64 tokens"));
}

TEST_F(LateInteractionTest, AModelWithoutTokenVectorsOrOneClassDoesNotRank) {
  const RestResult result =
      Ask("/rerank", {{"model", "tiny"}, {"query", "w11"}, {"texts", {"w48"}}});
  EXPECT_THAT(result.body, HasSubstr("model: expected a model that is a reranker (scores one "
                                     "class, or returns token vectors); got \\\"tiny\\\""));
}

TEST_F(LateInteractionTest, OneModelMakesAllThreeKindsOfVectors) {
  const v1::EncodeResponse expected = Encode({2, 6, 11, 48, 11, 3}, "document");
  const Json body = {{"inputs", "w6 w11 w48 w11"}};
  const Json dense = Good(Ask("/models/several/embed", body));
  const std::vector<float> pooled = ToFloats(expected.pooled());
  ASSERT_EQ(dense[0].size(), pooled.size());
  for (size_t j = 0; j < pooled.size(); ++j) {
    EXPECT_NEAR(dense[0][j].get<double>(), pooled[j], 1e-6);
  }
  const Json sparse = Good(Ask("/models/several/embed_sparse", body));
  const std::vector<float> weights = ToFloats(expected.sparse().weights());
  ASSERT_EQ(sparse[0].size(), weights.size());
  for (size_t j = 0; j < weights.size(); ++j) {
    EXPECT_NEAR(sparse[0][j]["value"].get<double>(), weights[j], 1e-6);
  }
  // All tokens but the first, and with the prompt for documents.
  const Json all = Good(Ask("/models/several/embed_all", {{"inputs", {"w11 w48 w11"}}}));
  ASSERT_EQ(all[0].size(), 5u);
  const std::vector<float> vectors = VectorsOf({2, 6, 11, 48, 11, 3}, "document");
  for (size_t t = 0; t < 5; ++t) {
    ASSERT_EQ(all[0][t].size(), static_cast<size_t>(kP));
    for (size_t j = 0; j < kP; ++j) {
      EXPECT_NEAR(all[0][t][j].get<double>(), vectors[t * kP + j], 1e-6);
    }
  }
  const Json query =
      Good(Ask("/models/several/embed_all", {{"inputs", {"w11"}}, {"prompt_name", "query"}}));
  EXPECT_NEAR(query[0][0][0].get<double>(), VectorsOf({2, 5, 11, 3}, "query")[0], 1e-6);
}

}  // namespace late_interaction_test
}  // namespace attendant::server
