// Tests of what text APIs refuse, and what they say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>

#include "server/security/reloaded.h"
#include "tests/server/text_calls/text_fixture.h"
#include "tests/support/memory_weights.h"

namespace attendant::server {
namespace text_refusals_test {

using ::testing::HasSubstr;

class TextRefusalsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { rest_ = new TextFixture(); }
  static void TearDownTestSuite() {
    delete rest_;
    rest_ = nullptr;
  }
  static void Expect(const RestResult& result, int status, const std::string& message) {
    EXPECT_EQ(result.status, status) << result.body;
    EXPECT_THAT(result.body, HasSubstr(message));
  }

  static TextFixture* rest_;
};
TextFixture* TextRefusalsTest::rest_ = nullptr;

TEST_F(TextRefusalsTest, ModelsThatAreNotThereOrCannotDoIt) {
  Expect(rest_->Ask("/v1/embeddings", {{"model", "none"}, {"input", "w7"}}), 404,
         "no model is named \\\"none\\\"");
  Expect(rest_->Ask("/v1/embeddings", {{"model", "none"}, {"input", "w7"}}), 404,
         "; add a name with --alias");
  Expect(rest_->Ask("/v1/embeddings", {{"model", "ranker"}, {"input", "w7"}}), 400,
         "model: expected a model that returns one vector per text; got \\\"ranker\\\"");
  Expect(rest_->Ask("/models/bare/embed", {{"inputs", "w7"}}), 424,
         "it does not accept texts: it was not loaded from a directory with a tokenizer");
  Expect(rest_->Ask("/predict", {{"inputs", "w7"}}), 422,
         "model: expected one of classes, ranker, in the body or as /models/NAME/");
  Expect(rest_->Ask("/models/classes/rerank", {{"query", "w7"}, {"texts", {"w8"}}}), 424,
         "is a reranker (scores one class");
}

TEST_F(TextRefusalsTest, PathsThatAreNoneOfOpenAis) {
  Expect(rest_->Ask("/v1/models/tiny:predict", {{"instances", {"w7"}}}), 404,
         "use version 2 of KServe's protocol, /v2/models/NAME/infer");
  for (const char* path :
       {"/v1/v1/embeddings", "/v1/chat/completions", "/v1", "/v3/chat/completions",
        "/openai/v1/chat/completions", "/openai/v1", "/openai/deployments/tiny/chat/completions"}) {
    const RestResult refused = rest_->Ask(path, {{"input", "w7"}});
    Expect(refused, 404,
           absl::StrCat("path: not found (\\\"", path, "\\\"); check the base URL, or see"));
    EXPECT_EQ(refused.json()["error"]["code"], "unknown_url");
    EXPECT_EQ(refused.header("connection"), "");
    EXPECT_EQ(rest_->Get(path).status, 404);
  }
}

TEST_F(TextRefusalsTest, PathsOfAWrongBaseUrlHaveErrorsOfTheirApi) {
  const std::string why = "path: not found (\\\"";
  for (const char* path : {"/v2/v2/embed", "/base/v2/rerank"}) {
    Expect(rest_->Ask(path, Json::object()), 404, absl::StrCat(R"({"message":")", why, path));
  }
  Expect(
      rest_->Ask("/base/v1/embeddings", Json::object()), 404,
      absl::StrCat(R"({"error":{"message":")", why, R"(/base/v1/embeddings\"); check the base)"));
  Expect(rest_->Ask("/tiny/embed", Json::object()), 404,
         absl::StrCat(R"({"error":")", why, "/tiny/embed"));
  Expect(rest_->Ask("/base/api/embeddings", Json::object()), 404,
         absl::StrCat(R"({"error":")", why, "/base/api/embeddings"));
  EXPECT_EQ(rest_->Get("/base/v1/embeddings").body, "not found\n");
  EXPECT_EQ(rest_->Ask("/base", Json::object()).body, "not found\n");
  EXPECT_EQ(rest_->Ask("/v2/models/tiny/embed", Json::object()).status, 405);  // a name
}

TEST_F(TextRefusalsTest, WhatOllamaHasAndThisServerHasNot) {
  const RestResult path = rest_->Ask("/api/chat", {{"model", "tiny"}});
  Expect(path, 404, R"({"error":"path: not found (\"/api/chat\"); check the base URL, or see)");
  const RestResult model = rest_->Ask("/api/embed", {{"model", "none:latest"}, {"input", "w7"}});
  Expect(model, 404, R"({"error":"model: not found (no model is named \"none:latest\"))");
  Expect(rest_->Ask("/api/embed", {{"model", "tiny"}, {"input", Words(90)}, {"truncate", false}}),
         400, "input: expected at most 64 tokens; got 92");
  EXPECT_EQ(rest_->Ask("/api/tags", Json::object()).status, 405);
}

TEST_F(TextRefusalsTest, ABodyThatIsNotAsExpected) {
  Expect(rest_->Post("/v1/embeddings", "{"), 400, "the body: ");
  Expect(rest_->Ask("/v1/embeddings", {{"model", "tiny"}}), 400, "input: ");
  Expect(rest_->Ask("/embed", {{"inputs", Json::array()}}), 400, "inputs: ");
  Expect(rest_->Ask("/embed", {{"inputs", {"w7", 3}}}), 422, "inputs[1]: ");
}

TEST_F(TextRefusalsTest, TextsThatAreNotUnicode) {
  Expect(rest_->Post("/embed", R"({"inputs": ["w7", "w8 \ud800"]})"), 422, "inputs[1]");
  Expect(rest_->Post("/v1/embeddings", R"({"input": ["w7", "\udc00 w8"]})"), 400, "input[1]");
  Expect(rest_->Post("/v1/embeddings", "{\"input\": \"w7 \xff\"}"), 400, "");
}

TEST_F(TextRefusalsTest, IdsThatTheModelDoesNotHave) {
  Expect(rest_->Ask("/v1/embeddings", {{"input", {{2, 11, 3}, {2, 100, 3}}}}), 400, "input[1]");
}

// LangChain's OpenAIEmbeddings sends ids of OpenAI's tokenizer, unless it is told otherwise.
TEST_F(TextRefusalsTest, IdsOfAnotherTokenizer) {
  const std::string message =
      R"(: expected token ids of the model, which begin with 2 (\"[CLS]\"); )";
  Expect(rest_->Ask("/v1/embeddings", {{"input", {11, 48}}}), 400,
         "\"input" + message + "got 11; send");
  Expect(
      rest_->Ask("/v1/embeddings", {{"input", {{2, 11, 3}, {7}}}}), 400,
      "\"input[1]" + message + "got 7; send texts instead of another tokenizer's ids (LangChain: ");
  EXPECT_EQ(rest_->Ask("/models/tiny/embed", {{"inputs", {11, 48}}}).status, 200);
}

TEST_F(TextRefusalsTest, LongTextsAreCutUnlessTheRequestSaysOtherwise) {
  const RestResult cut = rest_->Ask("/embed", {{"inputs", {"w7", Words(90)}}});
  EXPECT_EQ(cut.status, 200) << cut.body;
  Expect(rest_->Ask("/embed", {{"inputs", {"w7", Words(90)}}, {"truncate", false}}), 422,
         "inputs[1]: expected at most 64 tokens; got 92; set truncation (truncate over HTTP) to "
         "cut longer texts");
}

TEST_F(TextRefusalsTest, TheLongerTextOfAPairIsTooLong) {
  const auto ask = [](const std::string& query, const std::string& document) {
    return rest_->Ask("/models/ranker/rerank",
                      {{"query", query}, {"texts", {"w7", document}}, {"truncate", false}});
  };
  Expect(ask("w8", Words(70)), 422, "texts[1]: expected at most 64 tokens in a pair; got 74; set");
  Expect(ask(Words(61), "w8"), 422, "query: expected at most 64 tokens in a pair; got 65; set");
  const Json pair = Json::array({"w7", Words(70)});
  Expect(rest_->Ask("/models/classes/predict", {{"inputs", pair}, {"truncate", false}}), 422,
         "inputs[1]: expected at most 64 tokens in a pair; got 74; set");
}

TEST_F(TextRefusalsTest, PartsOfTheOnlyInputInAListAreNamedWithItsPlace) {
  const Json pairs = Json::array({Json::array({"w7", Words(70)})});
  Expect(rest_->Ask("/models/classes/predict", {{"inputs", pairs}, {"truncate", false}}), 422,
         "inputs[0][1]: expected at most 64 tokens");
  Expect(rest_->Ask("/v1/embeddings", {{"input", {{2, 100, 3}}}}), 400,
         "input[0][1]: expected 0..99; got 100");
  Expect(rest_->Ask("/v1/embeddings", {{"input", {2, 100, 3}}}), 400,
         "input[1]: expected 0..99; got 100");
}

TEST_F(TextRefusalsTest, APromptOfIds) {
  Expect(rest_->Ask("/embed", {{"inputs", {{2, 11, 3}}}, {"prompt_name", "query"}}), 422,
         "prompt_name: cannot be combined with token ids");
}

TEST_F(TextRefusalsTest, LongTextsThatThePipelineWouldReadInParts) {
  const std::string message = "inputs: expected at most 64 tokens; got 92; set";
  Json body = {{"inputs", Words(90)}, {"parameters", {{"stride", 8}}}};
  Expect(rest_->Ask("/entities", body), 422, message);
  body["parameters"]["truncate"] = true;
  EXPECT_EQ(rest_->Ask("/entities", body).status, 200);
  body = {{"inputs", Words(60)}, {"stride", 8}};
  EXPECT_EQ(rest_->Ask("/entities", body).status, 200);
}

TEST_F(TextRefusalsTest, AnUnknownPrompt) {
  Expect(rest_->Ask("/embed", {{"inputs", {"w7"}}, {"prompt_name", "none"}}), 422,
         "prompt_name: expected one of the model's prompts, document, query; got \\\"none\\\"");
}

TEST_F(TextRefusalsTest, TimesThatAreNone) {
  for (const char* header : {"x-request-timeout", "x-stainless-read-timeout"}) {
    Expect(rest_->Ask("/v1/embeddings", {{"input", "w7"}}, absl::StrCat(header, ": soon\r\n")), 400,
           "expected seconds above 0; got \\\"soon\\\"");
  }
  EXPECT_EQ(
      rest_->Ask("/v1/embeddings", {{"input", "w7"}}, "x-stainless-read-timeout: 600\r\n").status,
      200);
}

TEST_F(TextRefusalsTest, ACompressedBody) {
  Expect(rest_->Ask("/embed", {{"inputs", "w7"}}, "Content-Encoding: gzip\r\n"), 415,
         "Content-Encoding: not supported; send the body uncompressed");
}

TEST_F(TextRefusalsTest, ALongBody) {
  TcpClient client(rest_->port());
  ASSERT_TRUE(client.Send(PostHead("/v1/embeddings", (1 << 20) + 1)));
  Expect(ParseResult(client.ReceiveAnswer()), 413,
         "the body: expected at most 1048576 bytes (--max-request-tokens); got ");
}

TEST_F(TextRefusalsTest, AnAnswerBeyondTheLimit) {
  Json texts = Json::array();
  for (int i = 0; i < 2000; ++i) texts.push_back("w7");
  Expect(rest_->Ask("/v1/embeddings", {{"input", texts}}), 400,
         "the response: expected at most 1048576 bytes (--max-answer-bytes); got up to ");
}

TEST_F(TextRefusalsTest, AreCounted) {
  rest_->Ask("/v1/embeddings", {{"model", "none"}, {"input", "w7"}});
  rest_->server().ExpectMetrics(HasSubstr(
      "attendant_requests_total{code=\"NOT_FOUND\",method=\"openai_embeddings\",model=\"\"}"));
}

TEST(TextNumbersTest, ThoseThatJsonDoesNotHaveAreAnError) {
  const ModelDescription description = TestModels().at("tiny")->encoder->description();
  test_support::MemoryWeights weights = test_support::RandomWeights(description, 1);
  weights.tensors().at("embeddings.word")[7 * 32] = std::numeric_limits<float>::quiet_NaN();
  auto model = std::make_shared<ServedModel>(
      "broken", *Encoder::Load(description, weights, [](int64_t, int64_t) {}));
  model->cost->SetRates({});
  model->tokenizer = WordsTokenizer();
  TextFixture rest(TextFixture::Serving({{"broken", model}}));
  EXPECT_EQ(rest.Ask("/v1/embeddings", {{"input", "w8"}}).status, 200);
  const RestResult openai = rest.Ask("/v1/embeddings", {{"input", {"w8", "w7"}}});
  EXPECT_EQ(openai.status, 502) << openai.body;
  EXPECT_THAT(openai.body, HasSubstr("NaN or infinity"));
  EXPECT_EQ(rest.Ask("/embed", {{"inputs", "w7"}}).status, 424);
}

TEST(TextTokensTest, CallsNeedATokenExceptForHealth) {
  // The SHA-256 of "test".
  const auto tokens = *Reloaded<Tokens>::Load({}, [](const std::vector<std::string>&) {
    return Tokens::Parse("infer 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08");
  });
  const ServerSecrets secrets = {.certificates = nullptr, .tokens = tokens.get()};
  TextFixture rest(TextFixture::Serving(), TextFixture::Limits(), secrets);
  const RestResult refused = rest.Ask("/v1/embeddings", {{"input", "w7"}});
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.header("www-authenticate"), "Bearer");
  EXPECT_EQ(refused.json()["error"]["code"], "invalid_api_key");
  EXPECT_EQ(rest.Get("/v1/models").status, 401);
  EXPECT_EQ(rest.Get("/info").status, 401);
  for (const char* path : {"//v1//embeddings/", "http://x/v1/embeddings", "/openai/v1/embeddings",
                           "/openai/deployments/tiny/embeddings", "//v2//models/tiny/infer",
                           "http://x/v2/models/tiny/infer", "/models/tiny//embed"}) {
    EXPECT_EQ(rest.Ask(path, {{"input", "w7"}}).status, 401) << path;
  }
  EXPECT_EQ(rest.Get("/health").status, 200);
  EXPECT_EQ(rest.Get("/openapi.json").status, 200);
  EXPECT_EQ(rest.Ask("/v1/embeddings", {{"input", "w7"}}, "Authorization: Bearer test\r\n").status,
            200);
  const std::string azure = "/openai/deployments/tiny/embeddings?api-version=2024-10-21";
  EXPECT_EQ(rest.Ask(azure, {{"input", "w7"}}, "api-key: test\r\n").status, 200);
  for (const char* header :
       {"api-key: other\r\n", "api-key: test\r\nAuthorization: Bearer other\r\n"}) {
    EXPECT_EQ(rest.Ask(azure, {{"input", "w7"}}, header).status, 401) << header;
  }
}

}  // namespace text_refusals_test
}  // namespace attendant::server
