// Tests of every route of the text APIs, over a real socket.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/support/text_models.h"
#include "tests/server/text_calls/text_fixture.h"

namespace attendant::server {
namespace text_routes_test {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

MATCHER(IsNear, "") { return std::abs(std::get<0>(arg) - std::get<1>(arg)) < 1e-6; }

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// One server for all tests.
class TextRoutesTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { rest_ = new TextFixture(); }
  static void TearDownTestSuite() {
    delete rest_;
    rest_ = nullptr;
  }

  static Json Good(const RestResult& result) {
    EXPECT_EQ(result.status, 200) << result.body;
    return result.json();
  }
  static void ExpectVector(const Json& row, const std::vector<float>& expected) {
    EXPECT_THAT(row.get<std::vector<float>>(), Pointwise(IsNear(), expected));
  }

  static TextFixture* rest_;
};
TextFixture* TextRoutesTest::rest_ = nullptr;

TEST_F(TextRoutesTest, Embeddings) {
  for (const char* path :
       {"/v1/embeddings", "/embeddings", "/models/tiny/v1/embeddings", "/openai/v1/embeddings",
        "/openai/deployments/tiny/embeddings?api-version=2024-10-21", "/v3/embeddings"}) {
    const Json answer = Good(rest_->Ask(path, {{"model", "tiny"}, {"input", {"w11 w48", "w7"}}}));
    EXPECT_EQ(answer["model"], "tiny");
    EXPECT_EQ(answer["usage"]["total_tokens"], 7);
    ExpectVector(answer["data"][0]["embedding"], rest_->VectorOf({2, 11, 48, 3}));
    ExpectVector(answer["data"][1]["embedding"], rest_->VectorOf({2, 7, 3}));
  }
}

// A model whose tokenizer truncates on the left, to 8 tokens.
TEST(TextTruncationTest, IsOnTheModelsSideUnlessTheRequestSaysOtherwise) {
  ServedModels models = ModelsOfTexts();
  TruncateOnTheLeft(models, "tiny", 8);
  TextFixture texts(TextFixture::Serving(models));
  const std::vector<int64_t> left = {2, 14, 15, 16, 17, 18, 19, 3},
                             right = {2, 10, 11, 12, 13, 14, 15, 3};
  const auto expect = [&](const std::string& path, Json body, const std::vector<int64_t>& ids) {
    body["model"] = "tiny";
    const RestResult result = texts.Ask(path, body);
    ASSERT_EQ(result.status, 200) << result.body;
    const Json answer = result.json();
    const Json& row = answer.is_array()               ? answer[0]
                      : answer.contains("embeddings") ? answer["embeddings"]["float"][0]
                                                      : answer["data"][0]["embedding"];
    EXPECT_THAT(row.get<std::vector<float>>(), Pointwise(IsNear(), texts.VectorOf(ids)));
  };
  expect("/v1/embeddings", {{"input", {Words(10)}}}, left);
  expect("/v1/embeddings", {{"input", {Words(10)}}, {"truncate", true}}, left);
  expect("/v1/embeddings", {{"input", {Words(10)}}, {"truncate", "END"}}, right);
  const Json ids = {2, 10, 11, 12, 13, 14, 15, 16, 17, 3};
  expect("/v1/embeddings", {{"input", {ids}}}, {2, 10, 11, 12, 13, 14, 15, 16});
  expect("/v1/embeddings", {{"input", {ids}}, {"truncate", "START"}},
         {11, 12, 13, 14, 15, 16, 17, 3});
  expect("/v2/embed", {{"texts", {Words(10)}}}, left);
  expect("/embed", {{"inputs", {Words(10)}}}, left);
  expect("/embed", {{"inputs", {Words(10)}}, {"truncation_direction", "Right"}}, right);
}

TEST_F(TextRoutesTest, EmbeddingsOfIdsAndOfTheOnlyModel) {
  const Json answer = Good(rest_->Ask("/v1/embeddings", {{"input", {{2, 11, 48, 3}, {2, 7, 3}}}}));
  EXPECT_EQ(answer["model"], "tiny");
  ExpectVector(answer["data"][0]["embedding"], rest_->VectorOf({2, 11, 48, 3}));
  ExpectVector(answer["data"][1]["embedding"], rest_->VectorOf({2, 7, 3}));
}

TEST_F(TextRoutesTest, DimensionsAreCutAndScaled) {
  const Json answer = Good(rest_->Ask("/v1/embeddings", {{"input", "w11"}, {"dimensions", 4}}));
  std::vector<float> expected = rest_->VectorOf({2, 11, 3});
  expected.resize(4);
  double sum = 0;
  for (const float number : expected) sum += number * number;
  for (float& number : expected) number = static_cast<float>(number / std::sqrt(sum));
  ExpectVector(answer["data"][0]["embedding"], expected);
  const RestResult refused = rest_->Ask("/v1/embeddings", {{"input", "w11"}, {"dimensions", 33}});
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body,
              HasSubstr("dimensions: expected 1..32, the width of the model's vectors; got 33"));
}

TEST_F(TextRoutesTest, EmbedOfTei) {
  for (const char* path : {"/embed", "/models/tiny/embed", "/models/tiny", "/models/tiny/"}) {
    const Json answer = Good(rest_->Ask(path, {{"inputs", {"w11 w48", "w7"}}}));
    ASSERT_EQ(answer.size(), 2u) << path;
    ExpectVector(answer[0], rest_->VectorOf({2, 11, 48, 3}));
    ExpectVector(answer[1], rest_->VectorOf({2, 7, 3}));
  }
  const Json raw = Good(rest_->Ask("/embed", {{"inputs", "w11"}, {"normalize", false}}));
  ExpectVector(raw[0], rest_->VectorOf({2, 11, 3}, /*normalize=*/false));
  const Json prompted = Good(rest_->Ask("/embed", {{"inputs", "w11"}, {"prompt_name", "query"}}));
  ExpectVector(prompted[0], rest_->VectorOf({2, 5, 11, 3}));
}

TEST_F(TextRoutesTest, EmbedAllHasTheTokensOfEach) {
  const Json answer = Good(rest_->Ask("/models/tiny/embed_all", {{"inputs", {"w7", "w11 w48"}}}));
  ASSERT_EQ(answer.size(), 2u);
  EXPECT_EQ(answer[0].size(), 3u);
  ASSERT_EQ(answer[1].size(), 4u);
  EXPECT_EQ(answer[1][0].size(), 32u);
}

TEST_F(TextRoutesTest, EmbedOfCohere) {
  const Json answer = Good(rest_->Ask("/v2/embed", {{"model", "tiny"},
                                                    {"texts", {"w11 w48"}},
                                                    {"input_type", "search_query"},
                                                    {"embedding_types", {"float"}}}));
  ExpectVector(answer["embeddings"]["float"][0], rest_->VectorOf({2, 5, 11, 48, 3}));
  const Json part = {{"type", "text"}, {"text", "w11 w48"}};
  const Json same = Good(rest_->Ask(
      "/v2/embed",
      {{"model", "tiny"}, {"inputs", {{{"content", {part}}}}}, {"input_type", "search_query"}}));
  EXPECT_EQ(same["embeddings"], answer["embeddings"]);
}

TEST_F(TextRoutesTest, EmbedOfTheFirstApiOfCohere) {
  const std::vector<float> expected = rest_->VectorOf({2, 6, 11, 48, 3});
  Json body = {{"model", "tiny"}, {"texts", {"w11 w48"}}, {"input_type", "search_document"}};
  const Json answer = Good(rest_->Ask("/v1/embed", body));
  EXPECT_EQ(answer["response_type"], "embeddings_floats");
  ExpectVector(answer["embeddings"][0], expected);
  body["embedding_types"] = {"float"};
  ExpectVector(Good(rest_->Ask("/v1/embed", body))["embeddings"]["float"][0], expected);
}

// As numpy.packbits(vector > 0) makes it, and sentence-transformers' "ubinary" of it.
TEST_F(TextRoutesTest, VectorsOfBits) {
  const std::vector<float> vector = rest_->VectorOf({2, 11, 48, 3});
  std::vector<int> bytes, signed_bytes;
  for (size_t i = 0; i < vector.size(); i += 8) {
    int byte = 0;
    for (size_t bit = 0; bit < 8; ++bit) byte = 2 * byte + (vector[i + bit] > 0 ? 1 : 0);
    bytes.push_back(byte);
    signed_bytes.push_back(byte - 128);
  }
  const auto embedding = [](const char* member, const char* type) {
    const Json body = {{"model", "tiny"}, {"input", "w11 w48"}, {member, type}};
    return Good(rest_->Ask("/v1/embeddings", body))["data"][0]["embedding"];
  };
  for (const char* member : {"embedding_type", "encoding_type", "output_dtype"}) {
    EXPECT_EQ(embedding(member, "ubinary"), Json(bytes)) << member;
    EXPECT_EQ(embedding(member, "binary"), Json(signed_bytes)) << member;
  }
  const Json cohere =
      Good(rest_->Ask("/v2/embed", {{"model", "tiny"},
                                    {"texts", {"w11 w48"}},
                                    {"embedding_types", {"binary", "float", "ubinary"}}}));
  EXPECT_EQ(cohere["embeddings"]["ubinary"][0], Json(bytes));
  EXPECT_EQ(cohere["embeddings"]["binary"][0], Json(signed_bytes));
  ExpectVector(cohere["embeddings"]["float"][0], vector);
}

TEST_F(TextRoutesTest, EmbeddingsOfVoyage) {
  const Json answer = Good(rest_->Ask("/v1/embeddings", {{"model", "tiny"},
                                                         {"input", {"w11"}},
                                                         {"input_type", "document"},
                                                         {"truncation", true},
                                                         {"output_dtype", "float"},
                                                         {"output_dimension", 4},
                                                         {"encoding_format", nullptr}}));
  const Json same = Good(rest_->Ask(
      "/v1/embeddings",
      {{"model", "tiny"}, {"input", {"w11"}}, {"prompt_name", "document"}, {"dimensions", 4}}));
  EXPECT_EQ(answer["data"][0]["embedding"].size(), 4u);
  EXPECT_EQ(answer, same);
  EXPECT_EQ(answer["usage"]["total_tokens"], 4);
}

TEST_F(TextRoutesTest, EmbedOfOllama) {
  for (const char* model : {"tiny", "tiny:latest"}) {
    const Json answer =
        Good(rest_->Ask("/api/embed", {{"model", model}, {"input", {"w11 w48", "w7"}}}));
    EXPECT_EQ(answer["model"], model);
    EXPECT_EQ(answer["prompt_eval_count"], 7);
    EXPECT_TRUE(answer["total_duration"].is_number_unsigned());
    ASSERT_EQ(answer["embeddings"].size(), 2u);
    ExpectVector(answer["embeddings"][0], rest_->VectorOf({2, 11, 48, 3}));
    ExpectVector(answer["embeddings"][1], rest_->VectorOf({2, 7, 3}));
  }
  const Json one = Good(rest_->Ask("/models/tiny/api/embed", {{"input", "w7"}}));
  ExpectVector(one["embeddings"][0], rest_->VectorOf({2, 7, 3}));
  const Json old = Good(rest_->Ask("/api/embeddings", {{"model", "tiny"}, {"prompt", "w7"}}));
  ExpectVector(old["embedding"], rest_->VectorOf({2, 7, 3}, /*normalize=*/false));
  const Json models = Good(rest_->Get("/api/tags"))["models"];
  ASSERT_EQ(models.size(), 5u);
  EXPECT_EQ(models[3]["name"], "tiny:latest");
  EXPECT_TRUE(Good(rest_->Get("/api/version"))["version"].is_string());
}

// The tag only counts if no model has the whole name.
TEST(TextTagTest, IsPartOfANameThatHasIt) {
  ServedModels models = ModelsOfTexts();
  for (const auto& [name, of] : {std::pair("w:latest", "tiny"), std::pair("w", "ranker")}) {
    auto model = std::make_shared<ServedModel>(*models.at(of));
    model->name = name;
    models[name] = std::move(model);
  }
  TextFixture texts(TextFixture::Serving(models));
  const auto status = [&](const char* name) {
    return texts.Ask("/api/embed", {{"model", name}, {"input", "w7"}}).status;
  };
  EXPECT_EQ(status("w:latest"), 200);
  EXPECT_EQ(status("tiny:latest"), 200);
  EXPECT_EQ(status("w"), 400);  // which ranks
  EXPECT_EQ(status("tiny:v1"), 404);
  EXPECT_EQ(status(":latest"), 404);
}

TEST_F(TextRoutesTest, EmbedSparse) {
  const Json answer = Good(rest_->Ask("/embed_sparse", {{"inputs", {"w11 w48", "w7"}}}));
  ASSERT_EQ(answer.size(), 2u);
  ASSERT_FALSE(answer[0].empty());
  EXPECT_TRUE(answer[0][0].contains("index") && answer[0][0].contains("value"));
}

TEST_F(TextRoutesTest, Similarity) {
  const Json answer = Good(rest_->Ask(
      "/similarity", {{"inputs", {{"source_sentence", "w11"}, {"sentences", {"w11", "w7"}}}}}));
  ASSERT_EQ(answer.size(), 2u);
  EXPECT_THAT(answer[0].get<float>(), FloatNear(1, 1e-6));
  EXPECT_LT(answer[1].get<float>(), 1);
}

TEST_F(TextRoutesTest, RerankOfEachApi) {
  const double first = Sigmoid(rest_->LogitsOf("ranker", {2, 11, 3, 48, 3}, {0, 0, 0, 1, 1})[0]);
  const Json of_jina = Good(rest_->Ask(
      "/v1/rerank", {{"model", "ranker"}, {"query", "w11"}, {"documents", {"w48", "w7 w8"}}}));
  for (const Json& one : of_jina["results"]) {
    if (one["index"] == 0) {
      EXPECT_THAT(one["relevance_score"].get<double>(), testing::DoubleNear(first, 1e-6));
    }
  }
  EXPECT_EQ(of_jina["results"].size(), 2u);
  EXPECT_GE(of_jina["results"][0]["relevance_score"], of_jina["results"][1]["relevance_score"]);
  const Json of_cohere = Good(rest_->Ask(
      "/v2/rerank",
      {{"model", "ranker"}, {"query", "w11"}, {"documents", {"w48", "w7 w8"}}, {"top_n", 1}}));
  EXPECT_EQ(of_cohere["results"].size(), 1u);
  const Json of_tei = Good(rest_->Ask("/rerank", {{"query", "w11"}, {"texts", {"w48", "w7 w8"}}}));
  EXPECT_EQ(of_tei.size(), 2u);
  EXPECT_EQ(of_tei[0]["score"], of_jina["results"][0]["relevance_score"]);
}

TEST_F(TextRoutesTest, RerankOfInfinityAndVllm) {
  const Json body = {{"model", "ranker"}, {"query", "w11"}, {"documents", {"w48", "w7 w8"}}};
  EXPECT_EQ(Good(rest_->Ask("/rerank", body))["results"],
            Good(rest_->Ask("/v1/rerank", body))["results"]);
}

TEST_F(TextRoutesTest, RerankOfVoyage) {
  Json body = {{"model", "ranker"}, {"query", "w11"}, {"documents", {"w48", "w7 w8"}}};
  const Json results = Good(rest_->Ask("/v1/rerank", body))["results"];
  body["truncation"] = true;
  EXPECT_EQ(Good(rest_->Ask("/v1/rerank", body))["data"], results);
  body["top_k"] = 1;
  const Json answer = Good(rest_->Ask("/v1/rerank", body));
  EXPECT_EQ(answer["data"], Json::array({results[0]}));
  EXPECT_EQ(answer["results"], answer["data"]);
}

TEST_F(TextRoutesTest, Predict) {
  const Json answer = Good(rest_->Ask("/models/classes/predict", {{"inputs", "w11"}}));
  ASSERT_EQ(answer.size(), 3u);
  double sum = 0;
  for (const Json& one : answer) sum += one["score"].get<double>();
  EXPECT_NEAR(sum, 1, 1e-5);
  const Json raw =
      Good(rest_->Ask("/models/classes/predict", {{"inputs", "w11"}, {"raw_scores", true}}));
  const std::vector<float> logits = rest_->LogitsOf("classes", {2, 11, 3});
  EXPECT_NEAR(raw[0]["score"].get<double>(), *std::max_element(logits.begin(), logits.end()), 1e-5);
  // At its root a model does whatever it is for.
  for (const char* path : {"/models/classes", "/models/classes/invocations"}) {
    EXPECT_EQ(Good(rest_->Ask(path, {{"inputs", "w11"}})), answer) << path;
  }
}

TEST_F(TextRoutesTest, PredictAppliesAFunction) {
  const auto best = [](const std::string& function) {
    const Json body = {{"inputs", "w11"}, {"parameters", {{"function_to_apply", function}}}};
    return Good(rest_->Ask("/models/classes/predict", body))[0][0]["score"].get<double>();
  };
  const std::vector<float> logits = rest_->LogitsOf("classes", {2, 11, 3});
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - most);
  EXPECT_NEAR(best("none"), most, 1e-5);
  EXPECT_NEAR(best("sigmoid"), Sigmoid(most), 1e-5);
  EXPECT_NEAR(best("softmax"), 1 / sum, 1e-5);
}

TEST_F(TextRoutesTest, Tokenize) {
  const Json answer = Good(rest_->Ask("/models/tiny/tokenize", {{"inputs", "w11 w48"}}));
  ASSERT_EQ(answer[0].size(), 4u);
  EXPECT_EQ(answer[0][0]["special"], true);
  EXPECT_EQ(answer[0][2]["id"], 48);
  EXPECT_EQ(answer[0][2]["start"], 4);
  EXPECT_EQ(answer[0][2]["stop"], 7);
  const Json bare = Good(
      rest_->Ask("/models/tiny/tokenize", {{"inputs", "w11 w48"}, {"add_special_tokens", false}}));
  EXPECT_EQ(bare[0].size(), 2u);
  const Json all = Good(rest_->Ask("/models/tiny/tokenize", {{"inputs", Words(90)}}));
  EXPECT_EQ(all[0].size(), 92u);
}

TEST_F(TextRoutesTest, Entities) {
  const Json answer = Good(rest_->Ask("/entities", {{"inputs", Words(20)}}));
  ASSERT_TRUE(answer.is_array() && !answer.empty()) << answer;
  const Json unknown = Good(rest_->Ask(
      "/entities",
      {{"inputs", "w5 Çé"}, {"aggregation_strategy", "none"}, {"ignore_labels", Json::array()}}));
  EXPECT_EQ(unknown.at(1).at("word"), "Çé");  // as the pipeline, not "[UNK]"
}

TEST_F(TextRoutesTest, ModelsAndInfo) {
  const Json models = Good(rest_->Get("/v1/models"));
  EXPECT_EQ(Good(rest_->Get("/models")), models);  // of a base URL without /v1
  EXPECT_EQ(Good(rest_->Get("/openai/models?api-version=2024-10-21")), models);
  std::vector<std::string> names;
  for (const Json& model : models["data"]) names.push_back(model["id"]);
  EXPECT_THAT(names, ElementsAre("classes", "labels", "ranker", "tiny", "words"));
  EXPECT_EQ(Good(rest_->Get("/v1/models/tiny"))["id"], "tiny");
  EXPECT_EQ(rest_->Get("/v1/models/none").status, 404);
  EXPECT_EQ(rest_->Get("/v1/models/bare").status, 400);
  EXPECT_TRUE(Good(rest_->Get("/openapi.json")).contains("paths"));
}

TEST_F(TextRoutesTest, InfoIsThatOfTextEmbeddingsInference) {
  const auto info = [](const std::string& model) {
    return Good(rest_->Get("/models/" + model + "/info"));
  };
  const ServiceLimits& limits = rest_->server().service().method_context().service.limits;
  EXPECT_EQ(info("tiny"), Json({{"model_id", "tiny"},
                                {"model_sha", nullptr},
                                {"model_dtype", "f32"},
                                {"served_model_name", "tiny"},
                                {"model_type", {{"embedding", {{"pooling", "mean"}}}}},
                                {"max_concurrent_requests", limits.max_inflight},
                                {"max_input_length", 64},
                                {"max_batch_tokens", limits.max_batch_tokens},
                                {"max_batch_requests", nullptr},
                                {"max_client_batch_size", 2048},
                                {"auto_truncate", true},
                                {"tokenization_workers", 1},
                                {"version", "1.0"},
                                {"sha", nullptr},
                                {"docker_label", nullptr}}));
  EXPECT_EQ(info("classes")["model_type"],
            Json::parse(R"({"classifier": {"id2label": {"0": "one", "1": "two", "2": "three"},
                                           "label2id": {"one": 0, "two": 1, "three": 2}}})"));
  EXPECT_EQ(
      info("ranker")["model_type"],
      Json::parse(R"({"reranker": {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}})"));
  EXPECT_EQ(info("labels")["model_type"]["token_classifier"]["label2id"]["B-PER"], 1);
  EXPECT_EQ(info("words")["model_type"], Json({{"embedding", {{"pooling", "splade"}}}}));
  EXPECT_EQ(rest_->Get("/info").status, 422);  // of which model
}

TEST_F(TextRoutesTest, HealthIsThatOfTheServer) {
  for (const char* path : {"/health", "/ping", "/models/tiny/health"}) {
    EXPECT_EQ(rest_->Get(path).status, 200) << path;
  }
}

// Of base URLs that end with a slash, and of clients that think of a proxy.
TEST_F(TextRoutesTest, PathsMayHaveMoreSlashesAndAHost) {
  const Json answer = Good(rest_->Ask("/models/tiny/embed", {{"inputs", "w11"}}));
  for (const char* path : {"/models/tiny//embed", "//models/tiny/embed/", "/models//tiny/embed?a=/",
                           "http://x/models/tiny/embed", "http://x:80//models/tiny/embed"}) {
    EXPECT_EQ(Good(rest_->Ask(path, {{"inputs", "w11"}})), answer) << path;
  }
  EXPECT_EQ(rest_->Get("/v1/models/").status, 200);
  EXPECT_EQ(rest_->Get("/health/").status, 200);
  EXPECT_EQ(rest_->Get("/v2/").status, 200);
  EXPECT_EQ(rest_->Get("http://x").status, 404);  // the page
}

TEST_F(TextRoutesTest, OtherPathsBelongToOthers) {
  EXPECT_EQ(rest_->Get("/").status, 404);  // the page, which is not here
  EXPECT_EQ(rest_->Ask("/v4/embeddings", {}).status, 404);
  EXPECT_EQ(rest_->Get("/v2/health/ready").status, 200);
  EXPECT_EQ(rest_->Infer("tiny", IdsBody()).status, 200);
}

TEST_F(TextRoutesTest, RefusesOtherMethods) {
  const RestResult read = rest_->Get("/v1/embeddings");
  EXPECT_EQ(read.status, 405);
  EXPECT_EQ(read.header("allow"), "POST");
  const RestResult written = rest_->Ask("/v1/models", {});
  EXPECT_EQ(written.status, 405);
  EXPECT_EQ(written.header("allow"), "GET, HEAD");
}

}  // namespace text_routes_test
}  // namespace attendant::server
