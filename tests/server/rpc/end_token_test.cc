// Tests of pooled vectors that end with a token of some id, and of texts that are padded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/support/encode_calls.h"
#include "tests/server/support/text_models.h"
#include "tests/server/support/wire_tensors.h"

namespace attendant::server {
namespace end_token_test {

using ::testing::ElementsAre;

constexpr int64_t kE = 32;

// Models of "tiny" that are pooled by their last token: up to the id 15, up to the largest id, and
// with texts that are padded to six tokens on either side.
TestServerOptions Serving() {
  TestServerOptions options;
  options.models = TestModels();
  ModelDescription model = TestModels().at("tiny")->encoder->description();
  model.pooling = {.modes = {PoolingMode::kLastToken}, .end_id = 15};
  options.models.merge(ModelOf("ending", model));
  model.pooling->end_id = PoolingDescription::kLargestId;
  options.models.merge(ModelOf("largest", model));
  model.pooling->end_id = PoolingDescription::kNoEnd;
  ModelDescription scoring = model;
  scoring.classifier = {.modes = {PoolingMode::kLastToken}, .padding_id = 30};
  options.models.merge(ModelOf("scoring", scoring));
  for (const bool is_left : {false, true}) {
    const char* name = is_left ? "padded_left" : "padded";
    auto padded = std::make_shared<ServedModel>(*WithTexts(*ModelOf(name, model).at(name)));
    Tokenization tokenization = *padded->tokenization;
    tokenization.padding = {.length = 6, .id = 9, .is_left = is_left};
    padded->tokenization = std::make_shared<const Tokenization>(std::move(tokenization));
    options.models[name] = padded;
  }
  return options;
}

class EndTokenTest : public ::testing::Test {
 protected:
  static v1::EncodeRequest Request(const std::string& model) {
    return TwoSequences(model, {11, 15, 13, 30, 15, 30, 21, 22, 23, 20, 15, 40});
  }

  v1::EncodeResponse Call(const v1::EncodeRequest& request) { return EncodeOk(server_, request); }

  // Expects the rows of the request [2, 6] to be the pooled vectors, also if only they are wanted.
  void ExpectRows(v1::EncodeRequest request, int64_t first, int64_t second) {
    const v1::EncodeResponse response = Call(request);
    const std::vector<float> rows = ToFloats(response.hidden_states());
    const std::vector<float> pooled = ToFloats(response.pooled());
    EXPECT_EQ(Rows(pooled, kE, 0, 1), Rows(rows, kE, first, 1));
    EXPECT_EQ(Rows(pooled, kE, 1, 1), Rows(rows, kE, second, 1));
    request.set_omit_hidden_states(true);
    EXPECT_EQ(Call(request).pooled().data(), response.pooled().data());
  }

  TestServer server_ = TestServer(Serving());
};

// The second sequence keeps no token of that id, and then all of its tokens count.
TEST_F(EndTokenTest, IsTheFirstOfItsId) { ExpectRows(Request("ending"), 1, 9); }

TEST_F(EndTokenTest, IsTheFirstOfTheLargestId) { ExpectRows(Request("largest"), 3, 8); }

TEST_F(EndTokenTest, CountsForTheModelsOwnPoolingAlone) {
  v1::EncodeRequest request = Request("ending");
  request.set_pooling(v1::LAST_TOKEN);
  ExpectRows(request, 5, 9);
}

TEST_F(EndTokenTest, HiddenStatesHaveNone) {
  v1::EncodeRequest request = Request("ending");
  *request.mutable_hidden_states() = Call(request).hidden_states();
  request.clear_token_ids();
  ExpectRows(request, 5, 9);
}

// The first sequence ends with a token that a classifier takes for padding.
TEST_F(EndTokenTest, AClassifierSkipsPaddingAtTheEnd) {
  v1::EncodeRequest request = Request("scoring");
  ExpectRows(request, 5, 9);
  request.set_pooling(v1::CLASSIFIER);
  ExpectRows(request, 4, 9);
}

TEST_F(EndTokenTest, IsDescribed) {
  const auto get = [&](const char* name) {
    grpc::ClientContext context;
    v1::GetModelRequest request;
    request.set_model(name);
    v1::GetModelResponse response;
    EXPECT_TRUE(server_.stub().GetModel(&context, request, &response).ok());
    return response;
  };
  v1::GetModelResponse response = get("ending");
  EXPECT_EQ(response.pooling().end().id(), 15);
  EXPECT_FALSE(response.pooling().end().is_largest());
  EXPECT_FALSE(response.embeddings().has_text_padding());
  response = get("largest");
  EXPECT_TRUE(response.pooling().end().is_largest());
  response = get("padded_left");
  EXPECT_FALSE(response.pooling().has_end());
  EXPECT_EQ(response.embeddings().text_padding().length(), 6);
  EXPECT_EQ(response.embeddings().text_padding().id(), 9);
  EXPECT_TRUE(response.embeddings().text_padding().is_left());
}

class TextPaddingTest : public EndTokenTest {
 protected:
  void ExpectIds(const std::string& model, const std::vector<int64_t>& ids) {
    v1::EncodeRequest texts, same;
    for (v1::EncodeRequest* request : {&texts, &same}) {
      request->set_model(model);
      request->set_return_pooled(true);
    }
    texts.add_texts("hello world");
    texts.add_texts("hello hello hello hello hello");
    texts.set_return_tokens(true);
    *same.mutable_token_ids() = IntegerTensor({13}, ids);
    same.add_lengths(6);
    same.add_lengths(7);
    const v1::EncodeResponse response = Call(texts);
    EXPECT_EQ(response.pooled().data(), Call(same).pooled().data());
    EXPECT_THAT(response.lengths(), ElementsAre(6, 7));
    tokens_ = response.tokens(0);
  }

  v1::TextTokens tokens_;  // of the first text
};

// Texts that are longer stay as they are.
TEST_F(TextPaddingTest, CountsAsTokens) {
  ExpectIds("padded", {2, 4, 5, 3, 9, 9, 2, 4, 4, 4, 4, 4, 3});
  EXPECT_THAT(tokens_.ids(), ElementsAre(2, 4, 5, 3, 9, 9));
  EXPECT_THAT(tokens_.begins(), ElementsAre(0, 0, 6, 0, 0, 0));
  EXPECT_THAT(tokens_.ends(), ElementsAre(0, 5, 11, 0, 0, 0));
  EXPECT_THAT(tokens_.sources(), ElementsAre(2, 0, 0, 2, 2, 2));
}

TEST_F(TextPaddingTest, MayComeFirst) {
  ExpectIds("padded_left", {9, 9, 2, 4, 5, 3, 2, 4, 4, 4, 4, 4, 3});
  EXPECT_THAT(tokens_.begins(), ElementsAre(0, 0, 0, 0, 6, 0));
}

TEST_F(TextPaddingTest, IsAmongTheTokensThatTokenizeReturns) {
  v1::TokenizeRequest request;
  request.set_model("padded");
  request.add_texts("hello");
  grpc::ClientContext context;
  v1::TokenizeResponse response;
  ASSERT_TRUE(server_.stub().Tokenize(&context, request, &response).ok());
  EXPECT_THAT(response.texts(0).ids(), ElementsAre(2, 4, 3, 9, 9, 9));
}

}  // namespace end_token_test
}  // namespace attendant::server
