#include "proto/singular_values.h"

#include <cmath>
#include <limits>
#include <random>

#include "gmock/gmock.h"

namespace attendant::proto {
namespace singular_values_test {

using testing::DoubleEq;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pointwise;

TEST(SingularValuesTest, AreSortedAndTakeAnyShape) {
  EXPECT_THAT(SingularValues({3, 0, 0, -4}, 2, 2), ElementsAre(DoubleEq(4), DoubleEq(3)));
  // A A^T of both is {{14, 32}, {32, 77}}.
  const double larger = std::sqrt((91 + std::sqrt(8065)) / 2);
  const double smaller = std::sqrt((91 - std::sqrt(8065)) / 2);
  const auto expected = ElementsAre(DoubleNear(larger, 1e-13), DoubleNear(smaller, 1e-13));
  EXPECT_THAT(SingularValues({1, 2, 3, 4, 5, 6}, 2, 3), expected);
  EXPECT_THAT(SingularValues({1, 4, 2, 5, 3, 6}, 3, 2), expected);
  EXPECT_THAT(SingularValues({2}, 1, 1), ElementsAre(DoubleEq(2)));
}

TEST(SingularValuesTest, ThereAreNoneOfNothingOrOfNumbersThatAreNotFinite) {
  EXPECT_THAT(SingularValues({}, 0, 3), IsEmpty());
  EXPECT_THAT(SingularValues({1, std::numeric_limits<double>::infinity()}, 1, 2), IsEmpty());
  EXPECT_THAT(SingularValues({1, std::numeric_limits<double>::quiet_NaN()}, 2, 1), IsEmpty());
}

struct Sizes {
  int64_t rows;
  int64_t a_cols;
  int64_t b_cols;
};

class SingularValuesOfProductTest : public testing::TestWithParam<Sizes> {};

TEST_P(SingularValuesOfProductTest, AreThoseOfTheProduct) {
  const auto [rows, a_cols, b_cols] = GetParam();
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> a(rows * a_cols), b(rows * b_cols);
  for (float& value : a) value = normal(random);
  for (float& value : b) value = normal(random);
  std::vector<double> product(a_cols * b_cols);
  for (int64_t k = 0; k < rows; ++k) {
    for (int64_t i = 0; i < a_cols; ++i) {
      for (int64_t j = 0; j < b_cols; ++j) {
        product[i * b_cols + j] += double{a[k * a_cols + i]} * double{b[k * b_cols + j]};
      }
    }
  }
  std::vector<double> expected = SingularValues(product, a_cols, b_cols);
  std::vector<double> found = SingularValuesOfProduct(a, b, rows);
  ASSERT_LE(found.size(), expected.size());
  found.resize(expected.size());
  EXPECT_THAT(found, Pointwise(testing::DoubleNear(1e-12 * expected[0]), expected));
}

INSTANTIATE_TEST_SUITE_P(Sizes, SingularValuesOfProductTest,
                         testing::Values(Sizes{1, 1, 1}, Sizes{3, 8, 8}, Sizes{8, 3, 5},
                                         Sizes{64, 96, 100}, Sizes{70, 64, 200}),
                         [](const auto& test) {
                           const Sizes& sizes = test.param;
                           return std::to_string(sizes.rows) + "x" + std::to_string(sizes.a_cols) +
                                  "x" + std::to_string(sizes.b_cols);
                         });

}  // namespace singular_values_test
}  // namespace attendant::proto
