#include "engine/layers/pooling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "tests/support/engine_calls.h"
#include "tests/support/memory_weights.h"
#include "tests/support/test_vectors.h"

namespace attendant::test_support {
namespace pooling_test {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;

constexpr float kTolerance = 2e-6f;

std::vector<float> PoolRows(std::vector<PoolingMode> modes, const std::vector<float>& rows,
                            int64_t width, std::vector<int32_t> positions = {}) {
  std::vector<float> pooled(modes.size() * width);
  const int64_t count = static_cast<int64_t>(rows.size()) / width;
  Pool(modes, {rows.data(), count, width, width}, positions, absl::MakeSpan(pooled));
  return pooled;
}

void ExpectNear(const std::vector<float>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t j = 0; j < actual.size(); ++j) EXPECT_NEAR(actual[j], expected[j], kTolerance);
}

TEST(PooledRowsTest, AreTheEndsOrAll) {
  using enum PoolingMode;
  std::vector<int32_t> rows;
  EXPECT_TRUE(AppendPooledRows({kFirstToken}, 3, 4, rows));
  EXPECT_TRUE(AppendPooledRows({kFirstToken}, 7, 0, rows));
  EXPECT_TRUE(AppendPooledRows({kLastToken}, 7, 5, rows));
  EXPECT_TRUE(AppendPooledRows({kLastToken, kFirstToken}, 20, 2, rows));
  EXPECT_TRUE(AppendPooledRows({kFirstToken, kLastToken}, 22, 1, rows));
  EXPECT_THAT(rows, ElementsAre(3, 11, 20, 21, 22));
  for (const PoolingMode mode :
       {kMean, kMax, kMeanSqrtLen, kPositionWeightedMean, kFeatureMean, kAttention}) {
    EXPECT_FALSE(AppendPooledRows({kFirstToken, mode}, 30, 4, rows));
  }
  EXPECT_EQ(rows.size(), 5u);
}

TEST(TokensToEndTest, IsTheFirstTokenOfItsIdOrOfTheLargest) {
  using P = PoolingDescription;
  const auto tokens = [](int64_t end_id, const std::vector<int32_t>& ids) {
    return TokensToEnd({.modes = {PoolingMode::kLastToken}, .end_id = end_id}, ids);
  };
  EXPECT_EQ(tokens(P::kNoEnd, {5, 9, 7}), 3);
  EXPECT_EQ(tokens(9, {5, 9, 7, 9}), 2);
  EXPECT_EQ(tokens(9, {9}), 1);
  EXPECT_EQ(tokens(4, {5, 9, 7}), 3);  // which it does not have
  EXPECT_EQ(tokens(P::kLargestId, {5, 7, 9, 8, 9}), 3);
  EXPECT_EQ(tokens(P::kLargestId, {9, 9}), 1);
  for (const int64_t end : {P::kNoEnd, int64_t{9}, P::kLargestId}) EXPECT_EQ(tokens(end, {}), 0);
}

// As GenericForSequenceClassification of transformers.
TEST(TokensToEndTest, SkipsPaddingAtTheEnd) {
  const auto tokens = [](int64_t padding_id, const std::vector<int32_t>& ids) {
    return TokensToEnd({.modes = {PoolingMode::kLastToken}, .padding_id = padding_id}, ids);
  };
  EXPECT_EQ(tokens(-1, {5, 0, 0}), 3);
  EXPECT_EQ(tokens(0, {5, 7, 0, 0}), 2);
  EXPECT_EQ(tokens(0, {0, 5, 0, 7}), 4);
  EXPECT_EQ(tokens(0, {0, 0, 0}), 1);
  EXPECT_EQ(tokens(0, {}), 0);
}

// TV22: g([2, 3, 4], 1), where the second row keeps two tokens.
class TestVector22 : public ::testing::Test {
 protected:
  const std::vector<float> all_ = Generate(24, 1);
  const std::vector<float> first_ = {all_.begin(), all_.begin() + 12};
  const std::vector<float> second_ = {all_.begin() + 12, all_.begin() + 20};
};

TEST_F(TestVector22, Mean) {
  const std::vector<float> first = PoolRows({PoolingMode::kMean}, first_, 4);
  const std::vector<float> second = PoolRows({PoolingMode::kMean}, second_, 4);
  ExpectNear(first, {.27604167, -.10416667, .18489583, .47395833});
  double sum = std::accumulate(first.begin(), first.end(), 0.0);
  sum = std::accumulate(second.begin(), second.end(), sum);
  double squares = std::inner_product(first.begin(), first.end(), first.begin(), 0.0);
  squares = std::inner_product(second.begin(), second.end(), second.begin(), squares);
  EXPECT_NEAR(sum, .84244792, 8 * kTolerance);
  EXPECT_NEAR(squares, .64898851, 8 * kTolerance);
}

TEST_F(TestVector22, Max) {
  ExpectNear(PoolRows({PoolingMode::kMax}, first_, 4), {.9453125, .3828125, .671875, .9609375});
}

TEST_F(TestVector22, MeanSqrtLen) {
  ExpectNear(PoolRows({PoolingMode::kMeanSqrtLen}, first_, 4),
             {.47811819, -.18042196, .32024898, .82091991});
}

TEST_F(TestVector22, PositionWeightedMean) {
  ExpectNear(PoolRows({PoolingMode::kPositionWeightedMean}, first_, 4),
             {.32682292, -.05338542, .23567708, .52473958});
}

TEST_F(TestVector22, NormalizedMean) {
  std::vector<float> pooled = PoolRows({PoolingMode::kMean}, first_, 4);
  NormalizeToUnitLength(absl::MakeSpan(pooled));
  ExpectNear(pooled, {.46937129, -.17712124, .31439020, .80590164});
}

TEST(PoolTest, TakesFirstAndLastToken) {
  const std::vector<float> rows = {1, 2, 3, 4, 5, 6};
  EXPECT_THAT(PoolRows({PoolingMode::kFirstToken}, rows, 2), ElementsAre(1, 2));
  EXPECT_THAT(PoolRows({PoolingMode::kLastToken}, rows, 2), ElementsAre(5, 6));
}

TEST(PoolTest, ConcatenatesModesInTheirOrder) {
  const std::vector<float> rows = {1, 2, 3, 0};
  EXPECT_THAT(PoolRows({PoolingMode::kMax, PoolingMode::kFirstToken, PoolingMode::kMean}, rows, 2),
              ElementsAre(3, 2, 1, 2, 2, 1));
}

TEST(PoolTest, WeighsByThePositionInThePaddedRow) {
  // The weights are 2 and 6.
  EXPECT_THAT(PoolRows({PoolingMode::kPositionWeightedMean}, {4, 8}, 1, {1, 5}), ElementsAre(7));
}

TEST(PoolTest, LeavesOutTheRowsOfTheModelItself) {
  const std::vector<float> rows = {1, 2, 3, 5, 10};
  const auto pool = [&](std::vector<int32_t> positions, int64_t own_rows) {
    std::vector<float> pooled(2);
    Pool({PoolingMode::kFirstToken, PoolingMode::kFeatureMean}, {rows.data(), 5, 1, 1}, positions,
         absl::MakeSpan(pooled), own_rows);
    return pooled;
  };
  EXPECT_THAT(pool({}, 2), ElementsAre(1, 6));
  EXPECT_THAT(pool({}, 0), ElementsAre(1, FloatNear(4.2f, 1e-6f)));
  EXPECT_THAT(pool({}, 5), ElementsAre(1, 0));
  // After padding, and without the second of three rows of the model's own.
  EXPECT_THAT(pool({4, 5, 6, 7, 8}, 2), ElementsAre(1, 6));
  EXPECT_THAT(pool({4, 6, 7, 8, 9}, 3), ElementsAre(1, 6));
}

TEST(PoolTest, GivesZerosForNoToken) {
  std::vector<float> pooled(6, 7.0f);
  const std::vector<PoolingMode> modes = {PoolingMode::kMean, PoolingMode::kLastToken};
  Pool(modes, {nullptr, 0, 3, 3}, {}, absl::MakeSpan(pooled));
  EXPECT_THAT(pooled, Each(0.0f));
}

TEST(PoolTest, MaxKeepsNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::vector<float>& rows :
       {std::vector<float>{nan, 1, 2}, std::vector<float>{1, nan, 2},
        std::vector<float>{1, 2, nan}}) {
    EXPECT_TRUE(std::isnan(PoolRows({PoolingMode::kMax}, rows, 1)[0]));
  }
}

TEST(NormalizeToUnitLengthTest, LeavesZeros) {
  std::vector<float> zeros(3, 0.0f);
  NormalizeToUnitLength(absl::MakeSpan(zeros));
  EXPECT_THAT(zeros, Each(0.0f));
}

TEST(NormalizeToUnitLengthTest, DoesNotOverflow) {
  std::vector<float> vector = {3e38f, 3e38f};
  NormalizeToUnitLength(absl::MakeSpan(vector));
  EXPECT_THAT(vector, Each(FloatNear(std::sqrt(0.5f), kTolerance)));
}

class PoolAsDescribedTest : public ::testing::Test {
 protected:
  // Applies a head to one sequence of width 2.
  static std::vector<float> PoolThrough(HeadKind head,
                                        const std::shared_ptr<const Encoder>& encoder,
                                        const std::vector<float>& rows) {
    const ModelDescription& model = encoder->description();
    const PoolingDescription& shape =
        head == HeadKind::kClassifier ? *model.classifier : *model.pooling;
    std::vector<float> pooled(shape.input_width(2));
    const int64_t count = static_cast<int64_t>(rows.size()) / 2;
    encoder->Pool(head, {rows.data(), count, 2, 2}, {}, absl::MakeSpan(pooled));
    EncoderRun run(encoder, 8, 2);
    return ApplyHead(run, head, {pooled}).front();
  }

  static std::vector<float> TokenHead(const std::shared_ptr<const Encoder>& encoder,
                                      const std::vector<float>& token) {
    EncoderRun run(encoder, 8, 2);
    return ApplyHead(run, HeadKind::kTokenHead, {token}).front();
  }

  std::vector<float> PoolWith(const PoolingDescription& pooling, const std::vector<float>& rows,
                              MemoryWeights::Tensors dense) {
    ModelDescription model = SmallModel(1, 1, 2);
    model.pooling = pooling;
    MemoryWeights weights = RandomWeights(model, 1);
    for (auto& [name, values] : dense) weights.tensors()[name] = values;
    const auto encoder = LoadEncoder(model, weights);
    return PoolThrough(HeadKind::kPooling, encoder, rows);
  }
};

// A class token, two registers and two patches.
TEST_F(PoolAsDescribedTest, AHeadMayLookAtTheClassTokenAndThePatches) {
  ModelDescription model = SmallModel(1, 1, 2);
  model.patch_embedding = {.has_class = true, .registers = 2};
  model.classifier = {.modes = {PoolingMode::kFirstToken, PoolingMode::kFeatureMean},
                      .dense_width = 1};
  MemoryWeights weights = RandomWeights(model, 1);
  weights.tensors()["classifier.dense.weight"] = {1, 10, 100, 1000};
  weights.tensors()["classifier.dense.bias"] = {0.5};
  const auto encoder = LoadEncoder(model, weights);
  const std::vector<float> rows = {1, 2, 90, 90, 90, 90, 3, 1, 5, 2};
  EXPECT_THAT(PoolThrough(HeadKind::kClassifier, encoder, rows),
              ElementsAre(FloatNear(1 + 20 + 400 + 1500 + 0.5f, 1e-3f)));
}

// norm(gelu(x W1^T)) W2^T + b2 would be ModernBERT's; without a norm the numbers can be followed.
TEST_F(PoolAsDescribedTest, TheTokenHeadTakesOneTokenAtATime) {
  ModelDescription model = SmallModel(1, 1, 2);
  model.token_head = {
      .modes = {}, .dense_width = 2, .dense_activation = Activation::kRelu, .output_width = 3};
  MemoryWeights weights = RandomWeights(model, 1);
  weights.tensors()["token_head.dense.weight"] = {1, 2, -1, 1};
  weights.tensors()["token_head.dense.bias"] = {0, 0.5};
  weights.tensors()["token_head.output.weight"] = {1, 0, 0, 1, 2, 2};
  weights.tensors()["token_head.output.bias"] = {0, 0, 1};
  const auto encoder = LoadEncoder(model, weights);
  const std::vector<float> scores = TokenHead(encoder, {3.0f, -1.0f});
  EXPECT_THAT(scores, ElementsAre(FloatNear(1, kTolerance), FloatNear(0, kTolerance),
                                  FloatNear(3, kTolerance)));
}

TEST_F(PoolAsDescribedTest, TheTokenHeadNormalizesIfTheModelDoes) {
  ModelDescription model = SmallModel(1, 1, 2);
  model.token_head = {.modes = {}, .dense_width = 2, .normalize = true};
  MemoryWeights weights = RandomWeights(model, 1);
  weights.tensors()["token_head.dense.weight"] = {3, 0, 0, 4};
  weights.tensors()["token_head.dense.bias"] = {0, 0};
  const auto encoder = LoadEncoder(model, weights);
  const std::vector<float> vector = TokenHead(encoder, {1.0f, 1.0f});
  EXPECT_THAT(vector, ElementsAre(FloatNear(0.6f, kTolerance), FloatNear(0.8f, kTolerance)));
}

TEST_F(PoolAsDescribedTest, NormalizesIfTheModelDoes) {
  const PoolingDescription pooling = {.modes = {PoolingMode::kMean}, .normalize = true};
  EXPECT_THAT(PoolWith(pooling, {2, 6, 4, 2}, {}),
              ElementsAre(FloatNear(0.6f, kTolerance), FloatNear(0.8f, kTolerance)));
}

TEST_F(PoolAsDescribedTest, AppliesTheDenseLayer) {
  const PoolingDescription pooling = {.modes = {PoolingMode::kFirstToken, PoolingMode::kMax},
                                      .dense_width = 3,
                                      .dense_activation = Activation::kTanh};
  // Pooled: 1 -1 1 3.
  const std::vector<float> result =
      PoolWith(pooling, {1, -1, 0, 3},
               {{"pooling.dense.weight", {1, 0, 0, 0, 0, 1, 0, 0, 0.5, 0, 0, 0.25}},
                {"pooling.dense.bias", {0, 0.5, -1}}});
  EXPECT_THAT(result, ElementsAre(FloatNear(std::tanh(1.0f), kTolerance),
                                  FloatNear(std::tanh(-0.5f), kTolerance),
                                  FloatNear(std::tanh(0.25f), kTolerance)));
}

TEST_F(PoolAsDescribedTest, AppliesASecondLinearLayer) {
  const PoolingDescription pooling = {.modes = {PoolingMode::kFirstToken},
                                      .dense_width = 2,
                                      .dense_activation = Activation::kRelu,
                                      .output_width = 1};
  // Between the layers: 3 0.
  EXPECT_THAT(PoolWith(pooling, {1, -2},
                       {{"pooling.dense.weight", {1, -1, 0, 1}},
                        {"pooling.dense.bias", {0, 0}},
                        {"pooling.output.weight", {2, 9}},
                        {"pooling.output.bias", {0.5}}}),
              ElementsAre(FloatNear(6.5f, kTolerance)));
}

TEST_F(PoolAsDescribedTest, AppliesFurtherLinearLayers) {
  const PoolingDescription pooling = {
      .modes = {PoolingMode::kFirstToken},
      .dense_width = 3,
      .further_dense = {{2, Activation::kRelu}, {1, Activation::kTanh}}};
  // After the first one 1 2 -3, after the second one 0 2.5.
  EXPECT_THAT(PoolWith(pooling, {1, 2},
                       {{"pooling.dense.weight", {1, 0, 0, 1, -1, -1}},
                        {"pooling.dense.bias", {0, 0, 0}},
                        {"pooling.further.0.weight", {1, 0, 1, 0, 1, 0}},
                        {"pooling.further.0.bias", {0, 0.5}},
                        {"pooling.further.1.weight", {9, 0.25}},
                        {"pooling.further.1.bias", {0.125}}}),
              ElementsAre(FloatNear(std::tanh(0.75f), kTolerance)));
}

TEST_F(PoolAsDescribedTest, NormsBetweenTheLinearLayers) {
  const PoolingDescription pooling = {.modes = {PoolingMode::kFirstToken},
                                      .dense_width = 2,
                                      .has_dense_norm = true,
                                      .output_width = 1};
  // Before the norm 3 and 5; after it close to -1 and 1.
  EXPECT_THAT(PoolWith(pooling, {3, 5},
                       {{"pooling.dense.weight", {1, 0, 0, 1}},
                        {"pooling.dense.bias", {0, 0}},
                        {"pooling.dense_norm.weight", {1, 2}},
                        {"pooling.dense_norm.bias", {0, 1}},
                        {"pooling.output.weight", {1, 10}},
                        {"pooling.output.bias", {0}}}),
              ElementsAre(FloatNear(29.0f, 1e-4f)));
}

}  // namespace pooling_test
}  // namespace attendant::test_support
