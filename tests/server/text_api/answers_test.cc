// Answers of all routes, byte by byte; large ones piece by piece.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/http/http_content.h"
#include "tests/server/text_api/form_calls.h"

namespace attendant::server {
namespace answers_test {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(TextAnswersTest, OpenAi) {
  EXPECT_EQ(FormCall("/v1/embeddings", R"({"input": ["a", "b"]})")
                .Answered(Vectors(2, {1, -0.5f, 0.1f, -0.0f})),
            R"({"object":"list","model":"m","usage":{"prompt_tokens":4,"total_tokens":4},"data":[)"
            R"({"object":"embedding","index":0,"embedding":[1,-0.5]},)"
            R"({"object":"embedding","index":1,"embedding":[0.1,-0.0]}]})");
  for (const char* member : {"encoding_format", "embedding_type"}) {
    EXPECT_EQ(
        FormCall("/v1/embeddings", absl::StrCat("{\"input\": \"a\", \"", member, "\": \"base64\"}"))
            .Answered(Vectors(2, {1, -0.5f})),
        R"({"object":"list","model":"m","usage":{"prompt_tokens":2,"total_tokens":2},)"
        R"("data":[{"object":"embedding","index":0,"embedding":"AACAPwAAAL8="}]})");
  }
}

TEST(TextAnswersTest, Bits) {
  const TextResult result = Vectors(10, {1, -1, 0, -0.0f, 1e-30f, -1, -1, 2, -1, 3});
  const auto embedding = [&](const std::string& members) {
    FormCall call("/v1/embeddings", absl::StrCat("{\"input\": \"a\", ", members, "}"));
    return Json::parse(call.Answered(result))["data"][0]["embedding"].dump();
  };
  EXPECT_EQ(embedding(R"("embedding_type": "ubinary")"), "[137,64]");
  EXPECT_EQ(embedding(R"("embedding_type": "binary")"), "[9,-64]");
  EXPECT_EQ(embedding(R"("output_dtype": "ubinary", "encoding_format": "base64")"), "\"iUA=\"");
  EXPECT_EQ(embedding(R"("output_dtype": "binary", "encoding_format": "base64")"), "\"CcA=\"");
}

TEST(TextAnswersTest, FirstCohereEmbed) {
  const std::string id = "\\{\"id\":\"[0-9a-f-]+\",";
  EXPECT_THAT(FormCall("/v1/embed", R"({"texts": ["a", "\n"]})").Answered(Vectors(1, {1, 2})),
              MatchesRegex(id + R"("response_type":"embeddings_floats","meta":\{"api_version":)"
                                R"(\{"version":"1"\},"billed_units":\{"input_tokens":4\}\},)"
                                R"("embeddings":\[\[1\],\[2\]\],"texts":\["a","\\n"\]\})"));
  EXPECT_THAT(FormCall("/v1/embed", R"({"texts": ["a"], "embedding_types": ["float"]})")
                  .Answered(Vectors(1, {1})),
              MatchesRegex(id + R"("response_type":"embeddings_by_type","meta":\{"api_version":)"
                                R"(\{"version":"1"\},"billed_units":\{"input_tokens":2\}\},)"
                                R"("embeddings":\{"float":\[\[1\]\]\},"texts":\["a"\]\})"));
}

TEST(TextAnswersTest, CohereEmbed) {
  const std::string id = "\\{\"id\":\"[0-9a-f-]+\",";
  EXPECT_THAT(FormCall("/v2/embed", R"({"texts": ["a", "\n"]})").Answered(Vectors(1, {1, 2})),
              MatchesRegex(id + R"("response_type":"embeddings_by_type","meta":\{"api_version":)"
                                R"(\{"version":"2"\},"billed_units":\{"input_tokens":4\}\},)"
                                R"("embeddings":\{"float":\[\[1\],\[2\]\]\},)"
                                R"("texts":\["a","\\n"\]\})"));
  EXPECT_THAT(FormCall("/v2/embed", R"({"texts": ["a"],
                                       "embedding_types": ["float", "base64", "float"]})")
                  .Answered(Vectors(1, {1})),
              HasSubstr(R"("embeddings":{"base64":["AACAPw=="],"float":[[1]]},"texts":["a"]})"));
}

TEST(TextAnswersTest, Rerank) {
  const char kBody[] = R"({"query": "q", "documents": ["a", {"text": "b\""}, "c"],
                          "top_n": 2, "return_documents": true})";
  for (const char* path : {"/v1/rerank", "/v2/rerank"}) {
    EXPECT_THAT(
        FormCall(path, kBody).Answered(Vectors(1, {0.25f, 0.75f, 0.25f})),
        MatchesRegex(
            R"(\{"id":"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}",)"
            R"("object":"list","model":"m","usage":\{"prompt_tokens":6,"total_tokens":6\},)"
            R"("meta":\{"api_version":\{"version":"2"\},"billed_units":\{"search_units":1\},)"
            R"("tokens":\{"input_tokens":6\}\},"results":\[)"
            R"(\{"index":1,"relevance_score":0.75,"document":\{"text":"b\\""\}\},)"
            R"(\{"index":0,"relevance_score":0.25,"document":\{"text":"a"\}\}\]\})"));
  }
  const Json plain = Json::parse(FormCall("/v2/rerank", R"({"query": "q", "documents": ["a"],
                                                           "top_n": 100})")
                                     .Answered(Vectors(1, {0.5f})));
  EXPECT_EQ(plain["results"], Json::parse(R"([{"index": 0, "relevance_score": 0.5}])"));
  EXPECT_FALSE(plain.contains("data"));
}

TEST(TextAnswersTest, RerankOfVoyage) {
  FormCall call("/v1/rerank", R"({"query": "q", "documents": ["a", "b", "c"], "top_k": 2})");
  EXPECT_THAT(call.Answered(Vectors(1, {0.25f, 0.75f, 0.25f})),
              HasSubstr(R"("results":[{"index":1,"relevance_score":0.75},)"
                        R"({"index":0,"relevance_score":0.25}],)"
                        R"("data":[{"index":1,"relevance_score":0.75},)"
                        R"({"index":0,"relevance_score":0.25}]})"));
  FormCall with_documents("/v1/rerank", R"({"query": "q", "documents": ["a", {"text": "b\""}],
                                            "truncation": true, "return_documents": true})");
  EXPECT_THAT(
      with_documents.Answered(Vectors(1, {0.25f, 0.75f})),
      HasSubstr(R"("results":[{"index":1,"relevance_score":0.75,"document":{"text":"b\""}},)"
                R"({"index":0,"relevance_score":0.25,"document":{"text":"a"}}],)"
                R"("data":[{"index":1,"relevance_score":0.75,"document":"b\""},)"
                R"({"index":0,"relevance_score":0.25,"document":"a"}]})"));
}

TEST(TextAnswersTest, RerankForClientsThatDoNotSayTheirApi) {
  const char kBody[] = R"({"query": "q", "documents": ["a"], "return_documents": true})";
  EXPECT_THAT(FormCall("/v1/rerank", kBody).Answered(Vectors(1, {0.5f})),
              HasSubstr(R"("results":[{"index":0,"relevance_score":0.5,"document":{"text":"a"}}],)"
                        R"("data":[{"index":0,"relevance_score":0.5,"document":"a"}]})"));
}

TEST(TextAnswersTest, RerankOfInfinity) {
  FormCall call("/rerank", R"({"model": "m", "query": "q", "documents": ["a"], "raw_scores": false,
                               "return_documents": true})");
  EXPECT_FALSE(call.Read()->scores.has_value());
  const std::string answer = call.Answered(Vectors(1, {0.5f}));
  EXPECT_THAT(answer, HasSubstr(R"("object":"rerank","model":"m",)"));
  EXPECT_THAT(answer,
              HasSubstr(R"("results":[{"index":0,"relevance_score":0.5,"document":"a"}]})"));
  FormCall raw("/v1/rerank", R"({"query": "q", "documents": ["a"], "raw_scores": true})");
  EXPECT_EQ(raw.Read()->scores, ScoreFunction::kPlain);
}

TEST(TextAnswersTest, Vectors) {
  EXPECT_EQ(FormCall("/embed", R"({"inputs": "a"})").Answered(Vectors(3, {1e-10f, 3e20f, 12345})),
            "[[1e-10,3e+20,12345]]");
  TextResult result = Vectors(1, {1, 2, 3});
  result.tokens = {2, 0, 1};
  EXPECT_EQ(FormCall("/embed_all", R"({"inputs": ["a", [7], "b"]})").Answered(result),
            "[[[1],[2]],[],[[3]]]");
  result = {};
  result.sparse = {{{3, 0.5f}, {700, 1}}, {}};
  EXPECT_EQ(FormCall("/embed_sparse", R"({"inputs": ["a", "b"]})").Answered(result),
            R"([[{"index":3,"value":0.5},{"index":700,"value":1}],[]])");
  EXPECT_EQ(
      FormCall("/similarity", R"({"inputs": {"source_sentence": "s", "sentences": ["a", "b"]}})")
          .Answered(Vectors(2, {1, 0, 0.6f, 0.8f, 0, 1})),
      "[0,0.8]");
}

TEST(TextAnswersTest, Scores) {
  TextResult result = Vectors(3, {0.25f, 0.5f, 0.25f});
  result.labels = {"a", "b \"", "c"};
  const std::string labels =
      R"([{"score":0.5,"label":"b \""},{"score":0.25,"label":"a"},{"score":0.25,"label":"c"}])";
  EXPECT_EQ(FormCall("/predict", R"({"inputs": "x"})").Answered(result), labels);
  EXPECT_EQ(FormCall("/predict", R"({"inputs": ["x", "y"]})").Answered(result), labels);
  EXPECT_EQ(FormCall("/predict", R"({"inputs": [["x"]]})").Answered(result), "[" + labels + "]");
  EXPECT_EQ(FormCall("/predict", R"({"inputs": "x", "parameters": {}})").Answered(result),
            "[" + labels + "]");
  EXPECT_EQ(FormCall("/predict", R"({"inputs": "x", "parameters": {"top_k": 1}})").Answered(result),
            R"([[{"score":0.5,"label":"b \""}]])");
  EXPECT_EQ(
      FormCall("/rerank", R"({"query": "q", "texts": ["a", "b"]})").Answered(Vectors(1, {-1, 2})),
      R"([{"index":1,"score":2},{"index":0,"score":-1}])");
  EXPECT_EQ(FormCall("/rerank", R"({"query": "q", "texts": ["a", "b"], "return_text": true})")
                .Answered(Vectors(1, {0.5f, 0.5f})),
            R"([{"index":0,"score":0.5,"text":"a"},{"index":1,"score":0.5,"text":"b"}])");
}

void Add(v1::TextTokens& tokens, uint32_t id, const std::string& token, uint32_t source,
         std::array<uint32_t, 4> places) {
  tokens.add_ids(id);
  tokens.add_tokens(token);
  tokens.add_sources(source);
  tokens.add_begins(places[0]);
  tokens.add_ends(places[1]);
  tokens.add_byte_begins(places[2]);
  tokens.add_byte_ends(places[3]);
}

TEST(TextAnswersTest, Tokens) {
  TextResult result;
  v1::TextTokens& tokens = result.texts.emplace_back();
  Add(tokens, 101, "[CLS]", 2, {0, 0, 0, 0});
  Add(tokens, 5, "ask", 0, {0, 0, 0, 0});  // of a prompt
  Add(tokens, 7, "zoë", 0, {1, 4, 1, 5});
  Add(tokens, 8, "\xc3", 0, {5, 6, 7, 8});  // a token of a part of a character
  EXPECT_EQ(FormCall("/tokenize", R"({"inputs": " Zoë 🎉"})").Answered(result),
            R"([[{"id":101,"text":"[CLS]","special":true,"start":null,"stop":null},)"
            R"({"id":5,"text":"ask","special":false,"start":null,"stop":null},)"
            R"({"id":7,"text":"Zoë","special":false,"start":1,"stop":4},)"
            R"({"id":8,"text":"🎉","special":false,"start":5,"stop":6}]])");
}

TEST(TextAnswersTest, ByModel) {
  TextResult result = Vectors(1, {1});
  result.labels = {"a"};
  for (const char* path : {"/", "/invocations"}) {
    const auto answered = [&](const char* body) {
      FormCall call(path, body);
      call.request.main_wish = [](const std::string&) { return TextWish::kScores; };
      return call.Answered(result);
    };
    EXPECT_EQ(answered(R"({"inputs": "x"})"), R"([{"score":1,"label":"a"}])");
    EXPECT_EQ(answered(R"({"inputs": [["x"]]})"), R"([[{"score":1,"label":"a"}]])");
    EXPECT_EQ(answered(R"({"inputs": "x", "parameters": {}})"), R"([[{"score":1,"label":"a"}]])");
  }
}

TEST(TextAnswersTest, NumbersThatJsonDoesNotHaveAreAnError) {
  for (const float number : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    FormCall call("/embed", R"({"inputs": "a"})");
    const auto answer = call.Write(Vectors(2, {1, number}));
    EXPECT_EQ(KindOf(answer.status()), TextErrorKind::kFailed);
    EXPECT_EQ(answer.status().message(),
              "the model's output contains NaN or infinity, which JSON cannot represent");
    FormCall sparse("/embed_sparse", R"({"inputs": "a"})");
    TextResult result;
    result.sparse = {{{3, number}}};
    EXPECT_FALSE(sparse.Write(result).ok());
  }
}

// Vectors of numbers of all sizes.
TextResult ManyVectors(size_t inputs, int64_t width) {
  std::vector<float> numbers(inputs * static_cast<size_t>(width));
  uint32_t bits = 1;
  for (float& number : numbers) {
    bits = bits * 1664525 + 1013904223;
    std::memcpy(&number, &bits, sizeof number);
    if (!std::isfinite(number)) number = 0;
  }
  return Vectors(width, numbers);
}

TEST(TextAnswersTest, LargeOnesAreWrittenInPiecesWithTheSameNumbers) {
  constexpr size_t kInputs = 300;
  std::string body = "{\"inputs\": [\"a\"";
  for (size_t i = 1; i < kInputs; ++i) body += ",\"a\"";
  body += "]}";
  const TextResult result = ManyVectors(kInputs, 256);
  for (const size_t most : {size_t{1}, size_t{77}, size_t{1} << 20}) {
    FormCall call("/embed", body);
    const auto answer = call.Write(result);
    ASSERT_TRUE(answer.ok()) << answer.status();
    ASSERT_NE(answer->content, nullptr);
    EXPECT_GT(answer->content->size(), 600000);
    const Json read = Json::parse(BodyOf(*answer, most));
    std::vector<float> numbers;
    for (const Json& row : read) {
      for (const Json& number : row) numbers.push_back(number.get<float>());
    }
    ASSERT_EQ(numbers.size(), result.numbers.size());
    EXPECT_EQ(std::memcmp(numbers.data(), result.numbers.data(), numbers.size() * sizeof(float)),
              0);
  }
}

TEST(TextAnswersTest, LargeOnesOfEachKindAreJson) {
  constexpr size_t kInputs = 300;
  std::string texts = "[\"a\"";
  for (size_t i = 1; i < kInputs; ++i) texts += ",\"a\"";
  const TextResult result = ManyVectors(kInputs, 256);
  const Json openai =
      Json::parse(FormCall("/v1/embeddings", absl::StrCat("{\"encoding_format\": \"base64\", "
                                                          "\"input\": ",
                                                          texts, "]}"))
                      .Answered(result));
  ASSERT_EQ(openai["data"].size(), kInputs);
  std::string bytes;
  ASSERT_TRUE(absl::Base64Unescape(openai["data"][299]["embedding"].get<std::string>(), &bytes));
  EXPECT_EQ(bytes, std::string(reinterpret_cast<const char*>(&result.numbers[299 * 256]), 1024));
  const Json cohere = Json::parse(
      FormCall("/v2/embed", absl::StrCat("{\"embedding_types\": [\"float\", \"base64\"], "
                                         "\"texts\": ",
                                         texts, "]}"))
          .Answered(result));
  EXPECT_EQ(cohere["embeddings"]["float"].size(), kInputs);
  EXPECT_EQ(cohere["embeddings"]["base64"].size(), kInputs);
  EXPECT_EQ(cohere["texts"].size(), kInputs);
  TextResult all = ManyVectors(kInputs * 3, 256);
  all.tokens.assign(kInputs, 3);
  const Json tokens =
      Json::parse(FormCall("/embed_all", absl::StrCat("{\"inputs\": ", texts, "]}")).Answered(all));
  ASSERT_EQ(tokens.size(), kInputs);
  EXPECT_EQ(tokens[299].size(), 3u);
  EXPECT_EQ(tokens[299][2].size(), 256u);
}

TEST(TextAnswersTest, Ollama) {
  TextResult result = Vectors(2, {1, -0.5f, 0.1f, -0.0f});
  result.elapsed = absl::Microseconds(1500);
  EXPECT_EQ(FormCall("/api/embed", R"({"input": ["a", "b"]})").Answered(result),
            R"({"model":"m","total_duration":1500000,"load_duration":0,"prompt_eval_count":4,)"
            R"("embeddings":[[1,-0.5],[0.1,-0.0]]})");
  EXPECT_EQ(FormCall("/api/embeddings", R"({"prompt": "a"})").Answered(Vectors(2, {1, -0.5f})),
            R"({"embedding":[1,-0.5]})");
  const Json models = Json::parse(OllamaModelsAnswer({"m", "org/n:v1"}).body)["models"];
  ASSERT_EQ(models.size(), 2u);
  EXPECT_EQ(models[0]["name"], "m:latest");
  EXPECT_EQ(models[0]["model"], "m:latest");
  EXPECT_EQ(models[1]["name"], "org/n:v1");
  EXPECT_EQ(models[0]["details"]["families"], Json::array());
  EXPECT_EQ(OllamaModelsAnswer({}).body, R"({"models":[]})");
  EXPECT_EQ(OllamaVersionAnswer("1.2.3").body, R"({"version":"1.2.3"})");
}

TEST(TextAnswersTest, Models) {
  EXPECT_EQ(ModelAnswer("a/b").body,
            R"({"id":"a/b","object":"model","created":0,"owned_by":"attendant"})");
  EXPECT_EQ(ModelListAnswer({"m", "n"}).body,
            R"({"object":"list","data":[)"
            R"({"id":"m","object":"model","created":0,"owned_by":"attendant"},)"
            R"({"id":"n","object":"model","created":0,"owned_by":"attendant"}]})");
  EXPECT_EQ(ModelListAnswer({}).body, R"({"object":"list","data":[]})");
}

}  // namespace answers_test
}  // namespace attendant::server
