#include "client/inspect/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace attendant::client {
namespace statistics_test {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Matrix Rows(std::initializer_list<std::initializer_list<double>> rows) { return rows; }

Matrix Identity(int64_t size) {
  Matrix identity(size, size);
  for (int64_t i = 0; i < size; ++i) identity(i, i) = 1;
  return identity;
}

Matrix Product(const Matrix& a, const Matrix& b) {
  Matrix product(a.rows(), b.cols());
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t k = 0; k < a.cols(); ++k) {
      for (int64_t j = 0; j < b.cols(); ++j) product(i, j) += a(i, k) * b(k, j);
    }
  }
  return product;
}

TEST(MeasureHeadTest, ConfidenceIsTheMeanOfTheLargest) {
  EXPECT_DOUBLE_EQ(MeasureHead(Rows({{0.7, 0.3}, {0.4, 0.6}})).confidence, 0.65);
}

TEST(MeasureHeadTest, QueriesWithoutAKeyDoNotCount) {
  const HeadStatistics head = MeasureHead(Rows({{0, 1, 0}, {0, 0, 0}, {0.5, 0, 0.5}}));
  EXPECT_DOUBLE_EQ(head.confidence, 0.75);
  EXPECT_EQ(head.neighbour, 1);
  EXPECT_DOUBLE_EQ(head.neighbour_share, 1);  // from the first query only, as the last has no next
                                              // token
}

TEST(MeasureHeadTest, AShiftByOneIsPositional) {
  const Matrix next =
      Rows({{0.1, 0.8, 0.1, 0}, {0.1, 0.1, 0.8, 0}, {0.1, 0.1, 0, 0.8}, {0, 0, 0, 1}});
  HeadStatistics head = MeasureHead(next);
  EXPECT_EQ(head.neighbour, 1);
  EXPECT_DOUBLE_EQ(head.neighbour_share, 1);
  EXPECT_TRUE(head.positional());
  head =
      MeasureHead(Rows({{1, 0, 0, 0}, {0.8, 0.1, 0.1, 0}, {0.1, 0.8, 0.1, 0}, {0, 0.1, 0.8, 0.1}}));
  EXPECT_EQ(head.neighbour, -1);
  EXPECT_DOUBLE_EQ(head.neighbour_share, 1);
  head = MeasureHead(Identity(4));
  EXPECT_DOUBLE_EQ(head.neighbour_share, 0);
  EXPECT_FALSE(head.positional());
}

TEST(MeasureHeadTest, CountsTheQueriesThatLookAtRareTokens) {
  const Matrix p = Rows({{0.1, 0.7, 0.2, 0}, {0, 0, 0, 0}, {0.6, 0.3, 0.1, 0}, {0, 0.2, 0.3, 0.5}});
  EXPECT_DOUBLE_EQ(MeasureHead(p, {false, true, false, true}).rare_share.value(), 2.0 / 3);
  EXPECT_DOUBLE_EQ(MeasureHead(p, {false, false, true, false}).rare_share.value(), 0);
  EXPECT_FALSE(MeasureHead(p, {false, false, false, false}).rare_share.has_value());
  EXPECT_FALSE(MeasureHead(p).rare_share.has_value());
}

TEST(MeasureHeadTest, SymmetryIsTheShareOfTheSymmetricPart) {
  HeadStatistics head = MeasureHead(Rows({{0.75, 0.25}, {0.25, 0.75}}));
  EXPECT_DOUBLE_EQ(head.symmetry, 1);
  EXPECT_DOUBLE_EQ(head.largest_asymmetry, 0);
  head = MeasureHead(Rows({{0, 1}, {0, 1}}));  // its symmetric part is {{0, 1/2}, {1/2, 1}}
  EXPECT_DOUBLE_EQ(head.symmetry, 0.75);
  EXPECT_DOUBLE_EQ(head.largest_asymmetry, 1);
}

TEST(MeasureHeadTest, SingularValuesAddUp) {
  const auto cumulative = [](const Matrix& p) { return MeasureHead(p).cumulative_singular_values; };
  const auto near = [](double value) { return DoubleNear(value, 1e-12); };
  EXPECT_THAT(cumulative(Rows({{0.75, 0.25}, {0.25, 0.75}})), ElementsAre(near(2.0 / 3), near(1)));
  EXPECT_THAT(cumulative(Identity(4)), ElementsAre(near(0.25), near(0.5), near(0.75), near(1)));
  const Matrix rank_one = Rows({{0.2, 0.3, 0.5}, {0.2, 0.3, 0.5}, {0.2, 0.3, 0.5}});
  EXPECT_THAT(cumulative(rank_one), ElementsAre(near(1), near(1), near(1)));
}

TEST(MeasureHeadTest, LeavesSingularValuesOutWhereTheyCannotBe) {
  const auto cumulative = [](const Matrix& p) { return MeasureHead(p).cumulative_singular_values; };
  EXPECT_THAT(cumulative(Matrix(0, 0)), IsEmpty());
  EXPECT_THAT(cumulative(Matrix(kMostSingularValues + 1, kMostSingularValues + 1)), IsEmpty());
  EXPECT_THAT(cumulative(Matrix(3, 3, std::numeric_limits<double>::quiet_NaN())), IsEmpty());
}

TEST(MeasureHeadTest, OneTokenHasNoNeighbour) {
  const HeadStatistics head = MeasureHead(Rows({{1}}));
  EXPECT_DOUBLE_EQ(head.confidence, 1);
  EXPECT_DOUBLE_EQ(head.neighbour_share, 0);
  EXPECT_THAT(head.cumulative_singular_values, ElementsAre(1));
}

TEST(TokenUniformityTest, IsTheDistanceFromTheMean) {
  EXPECT_DOUBLE_EQ(TokenUniformity(Rows({{1, 2}, {1, 2}})), 0);
  EXPECT_DOUBLE_EQ(TokenUniformity(Rows({{1, 0}, {-1, 0}})), 1);
  EXPECT_DOUBLE_EQ(TokenUniformity(Rows({{3, 0}, {1, 0}})), std::sqrt(2.0 / 10));
  EXPECT_DOUBLE_EQ(TokenUniformity(Matrix(3, 2)), 0);
  EXPECT_DOUBLE_EQ(TokenUniformity(Matrix(0, 2)), 0);
}

// Attention alone averages tokens until they are alike; a residual keeps them apart.
TEST(TokenUniformityTest, ShowsRankCollapse) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  const auto draw = [&](int64_t rows, int64_t columns) {
    Matrix drawn(rows, columns);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) drawn(i, j) = normal(random);
    }
    return drawn;
  };
  const Matrix input = draw(16, 32);
  Matrix alone = input, with_residual = input;
  for (int layer = 0; layer < 8; ++layer) {
    Matrix p = draw(16, 16);
    for (int64_t i = 0; i < p.rows(); ++i) {
      double sum = 0;
      for (int64_t j = 0; j < p.cols(); ++j) sum += p(i, j) = std::exp(p(i, j));
      for (int64_t j = 0; j < p.cols(); ++j) p(i, j) /= sum;
    }
    const double before = TokenUniformity(alone);
    alone = Product(p, alone);
    const Matrix attended = Product(p, with_residual);
    for (int64_t i = 0; i < attended.rows(); ++i) {
      for (int64_t j = 0; j < attended.cols(); ++j) with_residual(i, j) += attended(i, j);
    }
    EXPECT_LT(TokenUniformity(alone), before);
  }
  EXPECT_LT(TokenUniformity(alone), 1e-3);
  EXPECT_GT(TokenUniformity(with_residual), 0.01);
}

TEST(RankOfShareTest, CountsUpToTheShare) {
  EXPECT_EQ(RankOfShare({0.5, 0.8, 0.95, 1}, 0.9), 3);
  EXPECT_EQ(RankOfShare({0.9, 1}, 0.9), 1);
  EXPECT_EQ(RankOfShare({0.5, 0.85}, 0.9), 2);
  EXPECT_EQ(RankOfShare({}, 0.9), 0);
}

TEST(CoarsenTest, AddsKeysAndAveragesQueries) {
  const Matrix p =
      Rows({{0.1, 0.2, 0.3, 0.4}, {0.4, 0.3, 0.2, 0.1}, {1, 0, 0, 0}, {0, 0, 0.5, 0.5}});
  EXPECT_EQ(Coarsen(p, 4), p);
  EXPECT_THAT(Coarsen(p, 2).values(), Each(DoubleNear(0.5, 1e-15)));
}

TEST(CoarsenTest, KeepsTheSumOfRowsWhenCellsAreUneven) {
  const Matrix p = Matrix(5, 5, 0.2);
  const Matrix coarse = Coarsen(p, 2);  // the cells have 2 and 3 tokens
  EXPECT_THAT(coarse.values(), ElementsAre(DoubleNear(0.4, 1e-15), DoubleNear(0.6, 1e-15),
                                           DoubleNear(0.4, 1e-15), DoubleNear(0.6, 1e-15)));
}

}  // namespace statistics_test
}  // namespace attendant::client
