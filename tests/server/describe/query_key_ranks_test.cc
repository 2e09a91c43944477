#include "server/describe/query_key_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "engine/checkpoint/checkpoint.h"
#include "tests/support/memory_weights.h"

namespace attendant::server {
namespace query_key_ranks_test {

using ::testing::Each;
using ::testing::ElementsAre;

// A model of one layer, E 4, with two heads of width 2.
ModelDescription TwoHeads() {
  ModelDescription model;
  model.layers = 1;
  model.layer.hidden_size = 4;
  model.layer.attention.heads = 2;
  model.layer.attention.key_width = model.layer.attention.value_width = 2;
  return model;
}

const std::vector<float> kIdentity = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};

std::vector<QueryKeyRanks> Measure(std::vector<float> query, std::vector<float> key) {
  test_support::MemoryWeights weights(
      {{"layer.0.query.weight", std::move(query)}, {"layer.0.key.weight", std::move(key)}});
  return MeasureQueryKeyRanks(TwoHeads(), weights).value();
}

TEST(QueryKeyRanksTest, CountsWhatHolds90Percent) {
  const auto full = Measure(kIdentity, kIdentity);
  ASSERT_EQ(full.size(), 1u);
  EXPECT_THAT(full[0].heads, ElementsAre(2, 2));
  EXPECT_EQ(full[0].concatenated, 4);
  // Squares 64 and 1, 98 % of which are in the first. Head 1 has 4 and 4.
  const auto uneven = Measure({8, 0, 0, 0, 0, 1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2}, kIdentity);
  EXPECT_THAT(uneven[0].heads, ElementsAre(1, 2));
  EXPECT_EQ(uneven[0].concatenated, 2);  // 64 + 4 of 73
}

// Heads of full rank look at the same two columns, so that together they have no higher rank.
TEST(QueryKeyRanksTest, SeesProjectionsThatHeadsShare) {
  const std::vector<float> shared = {1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0};
  const auto ranks = Measure(shared, shared);
  EXPECT_THAT(ranks[0].heads, ElementsAre(2, 2));
  EXPECT_EQ(ranks[0].concatenated, 2);
}

TEST(QueryKeyRanksTest, MeasuresHeadsThatShareAKey) {
  ModelDescription model = TwoHeads();
  model.layer.attention.key_value_heads = 1;
  test_support::MemoryWeights weights(
      {{"layer.0.query.weight", kIdentity}, {"layer.0.key.weight", {1, 0, 0, 0, 0, 1, 0, 0}}});
  const auto ranks = MeasureQueryKeyRanks(model, weights);
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  EXPECT_THAT((*ranks)[0].heads, ElementsAre(2, 2));
  EXPECT_EQ((*ranks)[0].concatenated, 2);
}

TEST(QueryKeyRanksTest, MeasuresHeadsWiderThanTheModel) {
  ModelDescription model = TwoHeads();
  model.layer.hidden_size = 1;
  test_support::MemoryWeights weights(
      {{"layer.0.query.weight", {1, 2, 3, 4}}, {"layer.0.key.weight", {5, 6, 7, 8}}});
  const auto ranks = MeasureQueryKeyRanks(model, weights);
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  EXPECT_THAT((*ranks)[0].heads, ElementsAre(1, 1));
  EXPECT_EQ((*ranks)[0].concatenated, 1);
}

TEST(QueryKeyRanksTest, IsZeroForZerosAndForValuesThatAreNotFinite) {
  EXPECT_THAT(Measure(std::vector<float>(16), kIdentity)[0].heads, Each(0));
  std::vector<float> infinite = kIdentity;
  infinite[0] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Measure(infinite, kIdentity)[0].concatenated, 0);
}

TEST(QueryKeyRanksTest, MeasuresEveryWeightSet) {
  const absl::StatusOr<Checkpoint> tiny = OpenCheckpoint("synthetic:tiny", {});
  const auto ranks = MeasureQueryKeyRanks(tiny->description, *tiny->weights);
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  ASSERT_EQ(ranks->size(), 2u);
  EXPECT_EQ((*ranks)[0].heads.size(), 4u);
}

TEST(QueryKeyRanksTest, TakesQueriesForTheKeysThatTheyAre) {
  ModelDescription model = TwoHeads();
  model.layer.attention.keys_are_queries = true;
  test_support::MemoryWeights weights(
      {{"layer.0.query.weight", {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0}}});
  const auto ranks = MeasureQueryKeyRanks(model, weights);
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  EXPECT_THAT((*ranks)[0].heads, ElementsAre(2, 1));
  EXPECT_EQ((*ranks)[0].concatenated, 1);  // squares 81, 1 and 1, 98 % of which are in the first
}

TEST(QueryKeyRanksTest, IsOfTheWidthInsideABottleneck) {
  ModelDescription model = TwoHeads();
  model.layer.extras.bottleneck.width = 2;
  const std::vector<float> ones = {1, 0, 0, 1, 1, 0, 0, 1};  // [4, 2]
  test_support::MemoryWeights weights(
      {{"layer.0.query.weight", ones}, {"layer.0.key.weight", ones}});
  const auto ranks = MeasureQueryKeyRanks(model, weights);
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  EXPECT_THAT((*ranks)[0].heads, ElementsAre(2, 2));
  EXPECT_EQ((*ranks)[0].concatenated, 2);
}

TEST(QueryKeyRanksTest, RefusesModelsThatDoNotProject) {
  ModelDescription model = TwoHeads();
  model.layer.attention.has_input_projection = false;
  test_support::MemoryWeights weights({});
  EXPECT_EQ(MeasureQueryKeyRanks(model, weights).status(),
            absl::InvalidArgumentError("the model has no query and key projections"));
}

TEST(QueryKeyRanksTest, RefusesWideModelsAndMissingWeights) {
  ModelDescription model = TwoHeads();
  test_support::MemoryWeights weights({});
  EXPECT_EQ(MeasureQueryKeyRanks(model, weights).status().code(), absl::StatusCode::kNotFound);
  model.layer.hidden_size = 2049;
  EXPECT_EQ(MeasureQueryKeyRanks(model, weights).status(),
            absl::OutOfRangeError("expected a width of at most 2048 for ranks; got 2049"));
}

}  // namespace query_key_ranks_test
}  // namespace attendant::server
