// Tests of "BERT self-attention source walk": BertSelfAttention's forward pass, from the mask to
// the context layer, and the article's variants of where queries, keys and values come from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/articles/article_server.h"
#include "tests/support/test_vectors.h"

namespace attendant::articles {
namespace bert_source_walk_test {

using attendant::test_support::Generate;
using nlohmann::json;
using ::testing::HasSubstr;

const json kSelfAttention = {{"module", "attention"}, {"file", "weights.safetensors"},
                             {"num_heads", 2},        {"weight_layout", "out_in"},
                             {"query", "self.query"}, {"key", "self.key"},
                             {"value", "self.value"}};

std::vector<TestTensor> Weights() {
  std::vector<TestTensor> tensors;
  int64_t seed = 2;
  for (const char* part : {"query", "key", "value"}) {
    const std::string name = std::string("self.") + part;
    tensors.push_back(Generated(name + ".weight", {4, 4}, seed++));
    tensors.push_back(Generated(name + ".bias", {4}, seed++));
  }
  return tensors;
}

v1::AttendRequest Request() {
  v1::AttendRequest request = RequestOf({2, 3, 4}, Generate(24, 1));
  *request.mutable_attention_mask() = IntegerTensor({2, 3}, {1, 1, 1, 1, 1, 0});
  return request;
}

// F1, TV2: the context layer, [B, S, E], without output projection, residual or norm.
TEST(BertSourceWalk, GivesTheContextLayer) {
  ArticleServer server(kSelfAttention, Weights());
  const v1::AttendResponse response = server.Attend(Request());
  EXPECT_EQ(server::ShapeOf(response.output()), (std::vector<int64_t>{2, 3, 4}));
  ExpectRow(ToFloats(response.output()), 0, {.76485570, .88767832, -.00705446, -.82642226});
}

// F1: every row of the probabilities sums to 1.
TEST(BertSourceWalk, ProbabilitiesSumToOne) {
  ArticleServer server(kSelfAttention, Weights());
  v1::AttendRequest request = Request();
  request.clear_attention_mask();
  const std::vector<float> probabilities = server.Probabilities(request);
  ASSERT_EQ(probabilities.size(), 2u * 2 * 3 * 3);
  for (size_t row = 0; row < probabilities.size(); row += 3) {
    EXPECT_NEAR(probabilities[row] + probabilities[row + 1] + probabilities[row + 2], 1, 1e-6);
  }
}

// F6: the additive mask [B, 1, 1, S] that the article broadcasts over heads and queries.
v1::AttendRequest WithBias(float at_padding, float elsewhere) {
  v1::AttendRequest request = Request();
  request.clear_attention_mask();
  *request.mutable_attention_bias() = FloatTensor(
      {2, 1, 1, 3}, {elsewhere, elsewhere, elsewhere, elsewhere, elsewhere, at_padding});
  return request;
}

// F5, F6: for kept queries, a mask of 0 and 1 equals the additive mask of 0 and a large negative
// number.
TEST(BertSourceWalk, AMaskIsALargeNegativeBias) {
  ArticleServer server(kSelfAttention, Weights());
  const std::vector<float> masked = server.Output(Request());
  const std::vector<float> biased = server.Output(WithBias(-10000, 0));
  EXPECT_LT(LargestDifference(server::Rows(masked, 4, 0, 5), server::Rows(biased, 4, 0, 5)), 1e-6);
}

// The article passes the mask on after two unsqueezes; adding its 0 and 1 to the scores masks
// nothing.
TEST(BertSourceWalk, AddingTheRawMaskIsWrong) {
  ArticleServer server(kSelfAttention, Weights());
  const std::vector<float> masked = server.Output(Request());
  const std::vector<float> added = server.Output(WithBias(0, 1));
  EXPECT_GT(LargestDifference(server::Rows(masked, 4, 0, 5), server::Rows(added, 4, 0, 5)), 0.05);
}

// F5: padding changes no bit of the kept rows.
TEST(BertSourceWalk, PaddingIsInvisible) {
  ArticleServer server(kSelfAttention, Weights());
  const std::vector<float> values = Generate(24, 1);
  const v1::AttendRequest alone = RequestOf({1, 2, 4}, {values.begin() + 12, values.begin() + 20});
  EXPECT_EQ(server::Rows(server.Output(Request()), 4, 3, 2), server.Output(alone));
}

// F7: nothing is dropped at inference.
TEST(BertSourceWalk, TwoRunsAreEqual) {
  ArticleServer server(kSelfAttention, Weights());
  EXPECT_EQ(server.Output(Request()), server.Output(Request()));
}

// F8: head h owns the columns h D to h D + D - 1; its context is that of a model with these columns
// only.
TEST(BertSourceWalk, HeadsOwnTheirColumns) {
  ArticleServer both(kSelfAttention, Weights());
  const std::vector<float> output = both.Output(Request());
  std::vector<TestTensor> second;
  int64_t seed = 2;
  for (const char* part : {"query", "key", "value"}) {
    const std::string name = std::string("self.") + part;
    const std::vector<float> weight = Generate(16, seed++), bias = Generate(4, seed++);
    second.push_back(WithValues(name + ".weight", {2, 4}, {weight.begin() + 8, weight.end()}));
    second.push_back(WithValues(name + ".bias", {2}, {bias.begin() + 2, bias.end()}));
  }
  json description = kSelfAttention;
  description["num_heads"] = 1;
  ArticleServer one(description, second);
  const std::vector<float> alone = one.Output(Request());
  for (int64_t row = 0; row < 6; ++row) {
    EXPECT_EQ(output[row * 4 + 2], alone[row * 2]);
    EXPECT_EQ(output[row * 4 + 3], alone[row * 2 + 1]);
  }
}

// F9: the hidden size has to be a multiple of the number of heads.
TEST(BertSourceWalk, HeadsDivideTheHiddenSize) {
  json description = kSelfAttention;
  description["num_heads"] = 3;
  EXPECT_THAT(Refusal(description, Weights()),
              HasSubstr("expected a multiple of num_heads 3 up to 65536 outputs; got 4"));
}

// F24, TV10: keys that are also the values, with one projection less.
TEST(BertSourceWalk, KeysMayBeTheValues) {
  json description = {{"module", "attention"}, {"file", "weights.safetensors"},
                      {"num_heads", 1},        {"weight_layout", "out_in"},
                      {"query", "query"},      {"key", "key"},
                      {"value", "key"}};
  const std::vector<TestTensor> shared = {Generated("query", {4, 4}, 2),
                                          Generated("key", {4, 4}, 4)};
  ArticleServer tied(description, shared);
  const v1::AttendRequest request = RequestOf({1, 3, 4}, Generate(12, 1));
  ExpectRow(tied.Output(request), 0, {-.33796603, -.03746062, -.68449302, .31153639});

  description["value"] = "value";
  std::vector<TestTensor> copied = shared;
  copied.push_back(Generated("value", {4, 4}, 4));
  ArticleServer untied(description, copied);
  EXPECT_EQ(tied.Output(request), untied.Output(request));
  EXPECT_EQ(tied.Model().layer().input_projections(), 2);
}

// F24: the projection that keys and values share is in memory once.
TEST(BertSourceWalk, SharedKeysAndValuesTakeAThirdLess) {
  constexpr int64_t kWidth = 192;
  json description = kSelfAttention;
  std::vector<TestTensor> weights = {Generated("self.query", {kWidth, kWidth}, 2),
                                     Generated("self.key", {kWidth, kWidth}, 4),
                                     Generated("self.value", {kWidth, kWidth}, 4)};
  ArticleServer untied(description, weights);
  description["value"] = "self.key";
  weights.pop_back();
  ArticleServer tied(description, weights);
  const auto model = tied.Model();
  // The elements are numbers of bfloat16 too, in which they are kept where that gives the same
  // bits.
  const int64_t bytes = kWidth * kWidth * (model.weight_type() == "bf16" ? 2 : 4);
  EXPECT_NEAR(untied.Model().weight_bytes() - model.weight_bytes(), bytes, bytes / 20);
}

// F27: no projections at all. The article says that a token's weight for itself is then the
// largest, which is true only of inputs with equal norms.
TEST(BertSourceWalk, WithoutProjectionsTheOwnWeightNeedNotWin) {
  ArticleServer server(json{{"module", "attention"},
                            {"num_heads", 1},
                            {"hidden_size", 2},
                            {"score_scale", 0.70710678}},
                       {});
  const std::vector<float> unequal = server.Probabilities(RequestOf({1, 2, 2}, {1, 0, 3, 0}));
  EXPECT_NEAR(unequal[0], .196, 1e-3);
  EXPECT_NEAR(unequal[1], .804, 1e-3);
  const std::vector<float> equal = server.Probabilities(RequestOf({1, 2, 2}, {3, 0, 0, 3}));
  EXPECT_GT(equal[0], equal[1]);
  EXPECT_GT(equal[3], equal[2]);
}

}  // namespace bert_source_walk_test
}  // namespace attendant::articles
