#include "engine/layers/state/routing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "engine/kernels/row_tiles.h"

namespace attendant {
namespace routing_test {

using ::testing::ElementsAre;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Routes rows of scores, each with one score for each expert.
Routing Route(const MixtureShape& shape, const std::vector<std::vector<float>>& scores) {
  const auto rows = static_cast<int64_t>(scores.size());
  Routing routing(shape, rows);
  const MatrixView<float> room = routing.scores(rows);
  for (int64_t r = 0; r < rows; ++r) {
    std::copy(scores[r].begin(), scores[r].end(), room.row(r));
    routing.Choose(r);
  }
  routing.AssignPlaces(rows);
  return routing;
}

std::vector<int32_t> ExpertsOf(const Routing& routing, int64_t row) {
  std::vector<int32_t> experts;
  for (const ExpertChoice& choice : routing.choices(row)) experts.push_back(choice.expert);
  return experts;
}

TEST(RoutingTest, TakesTheLargestProbabilitiesInAscendingOrderOfExperts) {
  const Routing routing = Route({4, 2}, {{0, 3, 1, 2}, {5, -1, 2, 4}});
  EXPECT_THAT(ExpertsOf(routing, 0), ElementsAre(1, 3));
  EXPECT_THAT(ExpertsOf(routing, 1), ElementsAre(0, 3));
  const double sum = 1 + std::exp(3) + std::exp(1) + std::exp(2);
  EXPECT_NEAR(routing.choices(0)[0].weight, std::exp(3) / sum, 1e-6);
  EXPECT_NEAR(routing.choices(0)[1].weight, std::exp(2) / sum, 1e-6);  // not renormalised
}

TEST(RoutingTest, TakesTheLowerExpertOfEqualOnes) {
  const Routing routing = Route({4, 2}, {{1, 1, 1, 1}, {0, 2, 1, 1}, {1, 0, 1, 2}});
  EXPECT_THAT(ExpertsOf(routing, 0), ElementsAre(0, 1));
  EXPECT_THAT(ExpertsOf(routing, 1), ElementsAre(1, 2));
  EXPECT_THAT(ExpertsOf(routing, 2), ElementsAre(0, 3));
}

// Scores so far apart that probabilities are 0 are still in their order.
TEST(RoutingTest, ChoosesAmongProbabilitiesOfZero) {
  const Routing routing = Route({3, 3}, {{-500, 0, 500}});
  EXPECT_THAT(ExpertsOf(routing, 0), ElementsAre(0, 1, 2));
  EXPECT_EQ(routing.choices(0)[0].weight, 0);
  EXPECT_EQ(routing.choices(0)[2].weight, 1);
}

TEST(RoutingTest, KeepsNonFiniteScoresInTheirRow) {
  const Routing routing = Route({3, 2}, {{0, kNaN, 1}, {kNaN, 2, 1}, {kInfinity, 0, 0}, {0, 1, 2}});
  for (int64_t row = 0; row < 3; ++row) {
    EXPECT_EQ(std::set<int32_t>({0, 1, 2}).count(ExpertsOf(routing, row)[0]), 1);
    EXPECT_LT(ExpertsOf(routing, row)[0], ExpertsOf(routing, row)[1]);
    for (const ExpertChoice& choice : routing.choices(row)) {
      EXPECT_TRUE(std::isnan(choice.weight)) << row;
    }
  }
  EXPECT_THAT(ExpertsOf(routing, 3), ElementsAre(1, 2));
  EXPECT_FALSE(std::isnan(routing.choices(3)[0].weight));
}

TEST(RoutingTest, GivesEachExpertWholeTilesForItsRowsInTheirOrder) {
  constexpr MixtureShape kShape = {6, 3};
  constexpr int64_t kRows = 100;
  std::mt19937 random(1);
  std::vector<std::vector<float>> scores(kRows, std::vector<float>(kShape.experts));
  for (auto& row : scores) {
    for (float& score : row) score = static_cast<float>(random() % 1000) / 100;
    row[4] = -20;  // nobody's
  }
  const Routing routing = Route(kShape, scores);
  int64_t end = 0;
  for (int64_t expert = 0; expert < kShape.experts; ++expert) {
    EXPECT_EQ(routing.begin(expert), end);
    int64_t place = routing.begin(expert);
    for (int64_t row = 0; row < kRows; ++row) {
      for (const ExpertChoice& choice : routing.choices(row)) {
        if (choice.expert != expert) continue;
        EXPECT_EQ(choice.place, place++);
      }
    }
    EXPECT_EQ(routing.rows(expert), place - end);
    end = place;
  }
  EXPECT_EQ(routing.rows(4), 0);
  EXPECT_LE(end, Routing::MostPlaces(kShape, kRows).value());
}

TEST(RoutingTest, PredictsItsBytes) {
  for (const MixtureShape& shape : {MixtureShape(), {1, 1}, {8, 2}}) {
    EXPECT_EQ(Routing::Bytes(shape, 32).value(), Routing(shape, 32).bytes());
  }
  EXPECT_EQ(Routing({}, 1024).bytes(), 0);
}

}  // namespace routing_test
}  // namespace attendant
