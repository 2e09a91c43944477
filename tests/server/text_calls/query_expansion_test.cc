// Tests of queries that a model of late interaction makes longer, compared with the same ids, and a
// bias that hides the added ones, from a client.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/server/support/encode_calls.h"
#include "tests/server/text_calls/text_fixture.h"

namespace attendant::server {
namespace query_expansion_test {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kP = 6;
constexpr int64_t kMask = 4;

// Queries (w5) have at least 8 tokens. Those of "fixed" have no more, and documents (w6) at most 9.
// "attended" attends to the added ones, and its scores are means.
ServedModels Models() {
  ModelDescription description = TestModels().at("tiny")->encoder->description();
  description.token_head = {.modes = {}, .dense_width = kP, .normalize = true};
  ServedModels models;
  for (const std::string name : {"fixed", "least", "attended"}) {
    Tokenization tokenization;
    tokenization.prompts = {{"query", "w5 "}, {"passage", "w6 "}};
    tokenization.tokenizer_json = "{}";
    tokenization.is_multi_vector = true;
    tokenization.query_expansion = {8, "[MASK]", name == "attended"};
    tokenization.scores_take_mean = name == "attended";
    if (name == "fixed") tokenization.task_lengths = {{"query", 8}, {"document", 9}};
    auto model = std::make_shared<ServedModel>(*ModelOf(name, description).at(name));
    model->tokenization = std::make_shared<const Tokenization>(std::move(tokenization));
    model->tokenizer = WordsTokenizer();
    models[name] = std::move(model);
  }
  return models;
}

class QueryExpansionTest : public TextFixture, public ::testing::Test {
 protected:
  QueryExpansionTest() : TextFixture(Serving(Models())) {}

  static v1::EncodeRequest Request(const std::string& model) {
    v1::EncodeRequest request;
    request.set_model(model);
    request.set_task("query");
    request.set_return_token_vectors(true);
    request.set_omit_hidden_states(true);
    return request;
  }
  static v1::EncodeRequest Queries(const std::string& model,
                                   const std::vector<std::string>& texts) {
    v1::EncodeRequest request = Request(model);
    for (const std::string& text : texts) request.add_texts(text);
    return request;
  }

  v1::EncodeResponse Call(const v1::EncodeRequest& request) { return EncodeOk(server(), request); }
  std::string Refusal(const v1::EncodeRequest& request) {
    v1::EncodeResponse response;
    const grpc::Status status = server().Encode(request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    return status.error_message();
  }

  // The vectors of these ids, of which the ones from `attended` on are not attended to. A bias of
  // zeros changes the last bits.
  std::vector<float> VectorsOf(const std::string& model, const std::vector<int64_t>& ids,
                               size_t attended) {
    v1::EncodeRequest request = Request(model);
    const auto tokens = static_cast<int64_t>(ids.size());
    *request.mutable_token_ids() = IntegerTensor({1, tokens}, ids);
    if (model != "attended") {
      std::vector<float> bias(ids.size());
      std::fill(bias.begin() + static_cast<std::ptrdiff_t>(attended), bias.end(),
                -std::numeric_limits<float>::infinity());
      *request.mutable_attention_bias() = FloatTensor({1, 1, 1, tokens}, bias);
    }
    return ToFloats(Call(request).token_vectors());
  }
};

TEST_F(QueryExpansionTest, QueriesGetMasksThatNothingAttendsTo) {
  const v1::EncodeResponse response = Call(Queries("fixed", {"w11 w12"}));
  EXPECT_THAT(response.lengths(), ElementsAre(8));
  const std::vector<int64_t> ids = {2, 5, 11, 12, 3, kMask, kMask, kMask};
  const std::vector<float> vectors = ToFloats(response.token_vectors());
  EXPECT_EQ(vectors, VectorsOf("fixed", ids, 5));
  EXPECT_NE(vectors, VectorsOf("fixed", ids, 8));
  EXPECT_EQ(ToFloats(Call(Queries("attended", {"w11 w12"})).token_vectors()),
            VectorsOf("attended", ids, 8));
}

TEST_F(QueryExpansionTest, TheAddedTokensAreReturnedWithTheOthers) {
  v1::EncodeRequest request = Queries("fixed", {"w11"});
  request.set_return_tokens(true);
  const v1::TextTokens tokens = Call(request).tokens(0);
  EXPECT_THAT(tokens.ids(), ElementsAre(2, 5, 11, 3, kMask, kMask, kMask, kMask));
  EXPECT_EQ(tokens.tokens(7), "[MASK]");
  EXPECT_EQ(tokens.ends(7), 0);
}

TEST_F(QueryExpansionTest, LongQueriesAreCutIfTheModelSaysSo) {
  v1::EncodeRequest request = Queries("fixed", {Words(9)});
  EXPECT_THAT(Call(request).lengths(), ElementsAre(12));  // as nobody asks to cut it
  request.set_truncation(v1::TRUNCATE_RIGHT);
  const v1::EncodeResponse cut = Call(request);
  EXPECT_THAT(cut.lengths(), ElementsAre(8));
  EXPECT_EQ(ToFloats(cut.token_vectors()), VectorsOf("fixed", {2, 5, 10, 11, 12, 13, 14, 3}, 8));
  request.set_model("least");
  EXPECT_THAT(Call(request).lengths(), ElementsAre(12));
}

TEST_F(QueryExpansionTest, QueriesOfAllLengthsGoTogether) {
  const std::vector<std::string> texts = {"w11 w12", Words(9), "w48"};
  for (const bool pads : {false, true}) {
    v1::EncodeRequest request = Queries("least", texts);
    request.set_pad_texts(pads);
    const v1::EncodeResponse together = Call(request);
    EXPECT_THAT(together.lengths(), ElementsAre(8, 12, 8));
    const std::vector<float> vectors = ToFloats(together.token_vectors());
    size_t begin = 0;
    for (const std::string& text : texts) {
      const std::vector<float> alone = ToFloats(Call(Queries("least", {text})).token_vectors());
      const auto from = vectors.begin() + static_cast<std::ptrdiff_t>(begin);
      EXPECT_EQ(std::vector<float>(from, from + static_cast<std::ptrdiff_t>(alone.size())), alone);
      begin += pads ? 12 * kP : alone.size();
    }
  }
}

TEST_F(QueryExpansionTest, DocumentsAndOtherTextsStayAsTheyAre) {
  v1::EncodeRequest request = Queries("fixed", {"w11"});
  request.set_task("document");  // whose prompt is that of passages
  EXPECT_THAT(Call(request).lengths(), ElementsAre(4));
  request.set_texts(0, Words(20));
  request.set_truncation(v1::TRUNCATE_RIGHT);
  EXPECT_THAT(Call(request).lengths(), ElementsAre(9));
  request.clear_task();
  EXPECT_THAT(Call(request).lengths(), ElementsAre(22));
}

TEST_F(QueryExpansionTest, RefusesWhatCountsTheAddedTokens) {
  v1::EncodeRequest request = Queries("fixed", {"w11"});
  request.set_return_pooled(true);
  request.set_pooling(v1::MEAN);
  EXPECT_THAT(Refusal(request), HasSubstr("return_pooled: cannot be combined with texts of the "
                                          "task \"query\" (the model adds tokens to queries)"));
  request.set_return_pooled(false);
  *request.mutable_attention_bias() = FloatTensor({1, 1, 1, 8}, std::vector<float>(8));
  EXPECT_THAT(Refusal(request), HasSubstr("attention_bias: cannot be combined with texts of the "
                                          "task \"query\""));
  request.set_model("attended");  // which hides nothing
  Call(request);
}

TEST_F(QueryExpansionTest, RerankScoresTheAddedTokens) {
  for (const std::string model : {"fixed", "attended"}) {
    const std::vector<float> query =
        VectorsOf(model, {2, 5, 11, 12, 3, kMask, kMask, kMask}, model == "fixed" ? 5 : 8);
    const double share = model == "fixed" ? 1 : 8;  // of a mean
    const std::vector<double> expected = {
        MaxSimOf(query, VectorsOf(model, {2, 6, 48, 3}, 4), kP) / share,
        MaxSimOf(query, VectorsOf(model, {2, 6, 11, 7, 3}, 5), kP) / share};
    for (const char* path : {"/rerank", "/v1/rerank", "/v2/rerank"}) {
      const bool is_tei = std::string(path) == "/rerank";
      const RestResult result = Ask(path, {{"model", model},
                                           {"query", "w11 w12"},
                                           {is_tei ? "texts" : "documents", {"w48", "w11 w7"}}});
      ASSERT_EQ(result.status, 200) << result.body;
      const Json ranks = is_tei ? result.json() : result.json()["results"];
      ASSERT_EQ(ranks.size(), 2u);
      for (const Json& rank : ranks) {
        EXPECT_THAT(rank[is_tei ? "score" : "relevance_score"].get<double>(),
                    DoubleNear(expected[rank["index"].get<size_t>()], 1e-5));
      }
    }
  }
}

TEST_F(QueryExpansionTest, VectorsOfTokensAreThoseOfTheChosenPrompt) {
  const auto ask = [&](const char* prompt) {
    Json body = {{"model", "fixed"}, {"inputs", {"w11 w12"}}};
    if (*prompt != '\0') body["prompt_name"] = prompt;
    return Ask("/models/fixed/embed_all", body).json()[0];
  };
  const std::vector<float> query = VectorsOf("fixed", {2, 5, 11, 12, 3, kMask, kMask, kMask}, 5);
  const std::vector<float> passage = VectorsOf("fixed", {2, 6, 11, 12, 3}, 5);
  for (const auto& [prompt, expected] :
       {std::pair{"query", query}, {"passage", passage}, {"", passage}}) {
    const Json rows = ask(prompt);
    ASSERT_EQ(rows.size() * kP, expected.size()) << prompt;
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(rows[i / kP][i % kP].get<double>(), expected[i], 1e-6);
    }
  }
}

TEST_F(QueryExpansionTest, ClientsLearnHowQueriesAreExpanded) {
  const auto get = [&](const char* model) {
    v1::GetTokenizerRequest request;
    request.set_model(model);
    v1::GetTokenizerResponse response;
    grpc::ClientContext context;
    server().stub().GetTokenizer(&context, request, &response);
    return response;
  };
  const v1::GetTokenizerResponse fixed = get("fixed");
  EXPECT_EQ(fixed.query_expansion().length(), 8);
  EXPECT_EQ(fixed.query_expansion().token(), "[MASK]");
  EXPECT_FALSE(fixed.query_expansion().attended());
  EXPECT_EQ(fixed.task_lengths().at("query"), 8);
  EXPECT_EQ(fixed.task_lengths().at("document"), 9);
  EXPECT_TRUE(get("attended").query_expansion().attended());
  EXPECT_THAT(get("attended").task_lengths(), IsEmpty());
}

}  // namespace query_expansion_test
}  // namespace attendant::server
