// Tests of a model without layers, whose vectors are means of rows of a table, in every interface.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/text/tokenizer.h"
#include "tests/server/text_calls/text_fixture.h"
#include "tests/support/engine_calls.h"
#include "tests/support/memory_weights.h"

namespace attendant::server {
namespace static_models_test {

using ::testing::Each;
using ::testing::HasSubstr;

// Words without special tokens around them.
std::shared_ptr<const ModelTokenizer> BareWords() {
  std::string vocabulary = R"("[UNK]": 0)";
  for (int i = 1; i < 20; ++i) absl::StrAppend(&vocabulary, ", \"w", i, "\": ", i);
  auto tokenizer = std::make_shared<ModelTokenizer>();
  tokenizer->bytes_per_second = 1e6;
  tokenizer->tokenizer =
      text::Tokenizer::Load(absl::StrCat(R"({"version": "1.0", "truncation": null, "padding": null,
              "added_tokens": [], "normalizer": null, "pre_tokenizer": {"type": "WhitespaceSplit"},
              "post_processor": null, "decoder": null, "model": {"type": "WordLevel", "vocab": {)",
                                         vocabulary, R"(}, "unk_token": "[UNK]"}})"),
                            {}, nullptr)
          .value();
  return tokenizer;
}

ModelDescription Table() {
  ModelDescription model;
  model.family = "static_embedding";
  model.layer.hidden_size = 6;
  model.layer.norms.placement = NormPlacement::kNone;
  model.layer.attention.heads = 1;
  model.layer.attention.key_width = model.layer.attention.value_width = 6;
  model.layer.attention.has_input_projection = model.layer.attention.has_output_projection = false;
  model.layer.attention.keys_are_queries = model.layer.attention.values_are_keys = true;
  model.embeddings = EmbeddingShape{.width = 6, .vocabulary = 20, .has_norm = false};
  model.pooling = {.modes = {PoolingMode::kMean}};
  return model;
}

TestServerOptions Serving() {
  auto model = std::make_shared<ServedModel>(*ModelOf("static", Table()).at("static"));
  model->tokenization = std::make_shared<const Tokenization>();
  model->tokenizer = BareWords();
  TestServerOptions options;
  options.models = {{"static", std::move(model)}};
  return options;
}

class StaticModelsTest : public ::testing::Test {
 protected:
  v1::EncodeResponse Encode(const std::vector<std::string>& texts) {
    v1::EncodeRequest request;
    request.set_model("static");
    for (const std::string& text : texts) request.add_texts(text);
    request.set_return_pooled(true);
    v1::EncodeResponse response;
    const grpc::Status status = rest_.server().Encode(request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  TextFixture rest_{Serving()};
};

TEST_F(StaticModelsTest, AnswersTheMeanOfTheRows) {
  const v1::EncodeResponse response = Encode({"w3 w5 w3", "w5"});
  const std::vector<float> rows = ToFloats(response.hidden_states());
  const std::vector<float> pooled = ToFloats(response.pooled());
  ASSERT_EQ(rows.size(), 24u);
  ASSERT_EQ(pooled.size(), 12u);
  for (int c = 0; c < 6; ++c) {
    EXPECT_EQ(rows[c], rows[12 + c]);      // w3
    EXPECT_EQ(rows[6 + c], rows[18 + c]);  // w5
    EXPECT_FLOAT_EQ(pooled[c], (2 * rows[c] + rows[6 + c]) / 3);
    EXPECT_EQ(pooled[6 + c], rows[6 + c]);
  }
}

TEST_F(StaticModelsTest, AnswersZerosForAnEmptyText) {
  const std::vector<float> beside = ToFloats(Encode({"w3", "", "w5"}).pooled());
  EXPECT_THAT(std::vector<float>(beside.begin() + 6, beside.begin() + 12), Each(0.0f));
  const std::vector<float> alone = ToFloats(Encode({"", " "}).pooled());
  ASSERT_EQ(alone.size(), 12u);
  EXPECT_THAT(alone, Each(0.0f));
}

TEST_F(StaticModelsTest, AnswersOverHttp) {
  const Json vectors =
      rest_.Ask("/embed", {{"inputs", {"w3 w5", "", "w5"}}, {"normalize", false}}).json();
  ASSERT_EQ(vectors.size(), 3u);
  const std::vector<float> expected = ToFloats(Encode({"w3 w5"}).pooled());
  for (int c = 0; c < 6; ++c) EXPECT_FLOAT_EQ(vectors[0][c].get<float>(), expected[c]);
  EXPECT_EQ(vectors[1], Json({0.0, 0.0, 0.0, 0.0, 0.0, 0.0}));
  const Json data = rest_.Ask("/v1/embeddings", {{"input", {"w3 w5", "w5"}}}).json()["data"];
  EXPECT_EQ(data.size(), 2u);
}

TEST_F(StaticModelsTest, TakesIds) {
  v1::EncodeRequest request;
  request.set_model("static");
  *request.mutable_token_ids() = IntegerTensor({1, 2}, {3, 5});
  request.set_omit_hidden_states(true);
  request.set_return_pooled(true);
  v1::EncodeResponse response;
  ASSERT_TRUE(rest_.server().Encode(request, &response).ok());
  EXPECT_EQ(ToFloats(response.pooled()), ToFloats(Encode({"w3 w5"}).pooled()));
}

TEST_F(StaticModelsTest, RefusesLayers) {
  v1::EncodeRequest request;
  request.set_model("static");
  request.add_texts("w3");
  request.mutable_layers()->set_count(1);
  v1::EncodeResponse response;
  EXPECT_THAT(rest_.server().Encode(request, &response).error_message(),
              HasSubstr("layers: not supported by model \"static\": it has only embeddings"));
  v1::AttendRequest attend;
  attend.set_model("static");
  *attend.mutable_hidden_states() = FloatTensor({1, 1, 6}, std::vector<float>(6));
  v1::AttendResponse attended;
  EXPECT_THAT(rest_.server().Attend(attend, &attended).error_message(),
              HasSubstr("layer: not supported by model \"static\": it has only embeddings"));
}

TEST_F(StaticModelsTest, IsDescribed) {
  v1::GetModelRequest request;
  request.set_model("static");
  v1::GetModelResponse response;
  grpc::ClientContext context;
  ASSERT_TRUE(rest_.server().stub().GetModel(&context, request, &response).ok());
  EXPECT_EQ(response.layers(), 0);
  EXPECT_EQ(response.layer().hidden_size(), 6);
  EXPECT_EQ(response.layer().heads(), 0);
  EXPECT_EQ(response.pooled_width(), 6);
}

// The weight of word i is kWeights[i].
constexpr float kWeights[] = {0.5f, 2, 0, -1.5f, 0.25f, 3};

TestServerOptions ServingWeights() {
  ModelDescription description = Table();
  description.layer.hidden_size = 1;
  description.layer.attention.key_width = description.layer.attention.value_width = 1;
  description.embeddings = EmbeddingShape{.width = 1, .vocabulary = 6, .has_norm = false};
  description.pooling.reset();
  description.lexical_head = {.modes = {}};
  test_support::MemoryWeights weights(
      {{"embeddings.word", {std::begin(kWeights), std::end(kWeights)}}});
  auto model =
      std::make_shared<ServedModel>("sparse", test_support::LoadEncoder(description, weights));
  Tokenization tokenization;
  tokenization.max_sequence_length = 4;
  tokenization.leaves_out_special_tokens = true;
  model->tokenization = std::make_shared<const Tokenization>(std::move(tokenization));
  model->tokenizer = WordsTokenizer();
  TestServerOptions options;
  options.models = {{"sparse", std::move(model)}};
  return options;
}

// As SparseStaticEmbedding of sentence-transformers: the weight of each word that is there, once.
TEST(SparseStaticModelsTest, WeighsTheWordsOfTexts) {
  const TextFixture rest(ServingWeights());
  const Json vectors =
      rest.Ask("/embed_sparse", {{"inputs", {"[SEP] w5 [MASK] w5", "w5 [CLS]", ""}}}).json();
  EXPECT_EQ(vectors, Json({{{{"index", 3}, {"value", -1.5}},
                            {{"index", 4}, {"value", 0.25}},
                            {{"index", 5}, {"value", 3.0}}},
                           {{{"index", 5}, {"value", 3.0}}},
                           Json::array()}));
}

TEST(SparseStaticModelsTest, CutsTextsWithoutSpecialTokens) {
  const TextFixture rest(ServingWeights());
  const Json cut =
      rest.Ask("/embed_sparse", {{"inputs", "w5 w5 w5 w5 [SEP]"}, {"truncate", true}}).json();
  EXPECT_EQ(cut, Json({{{{"index", 5}, {"value", 3.0}}}}));
}

TEST(SparseStaticModelsTest, HasNoVectorOfATextAlone) {
  const TextFixture rest(ServingWeights());
  EXPECT_THAT(rest.Ask("/embed", {{"inputs", "w5"}}).body,
              HasSubstr("model: expected a model that returns one vector per text"));
}

}  // namespace static_models_test
}  // namespace attendant::server
