#include "engine/kernels/max_sim.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/random_values.h"

namespace attendant {
namespace max_sim_test {

double Exact(MatrixView<const float> query, MatrixView<const float> document,
             const std::vector<int32_t>& rows) {
  double score = 0;
  for (int64_t q = 0; q < query.rows; ++q) {
    double largest = -std::numeric_limits<double>::infinity();
    for (const int32_t row : rows) {
      const double product =
          std::inner_product(query.row(q), query.row(q) + query.cols, document.row(row), 0.0);
      largest = std::max(largest, product);
    }
    score += largest;
  }
  return score;
}

std::vector<int32_t> All(int64_t count) {
  std::vector<int32_t> rows(static_cast<size_t>(count));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

TEST(MaxSimTest, IsThatOfFloat64AtEveryWidth) {
  for (const auto& [queries, rows] : {std::pair{1, 1}, {2, 4}, {3, 5}, {32, 7}, {5, 200}}) {
    for (int64_t width = 1; width < 140; width += width < 40 ? 1 : 33) {
      // Nothing is read beyond the rows.
      GuardedBuffer<float> query(queries * width), document(rows * width);
      const std::vector<float> q = RandomValues(queries * width, 1);
      const std::vector<float> d = RandomValues(rows * width, 2);
      std::copy(q.begin(), q.end(), query.data());
      std::copy(d.begin(), d.end(), document.data());
      const MatrixView<const float> x = {query.data(), queries, width, width};
      const MatrixView<const float> y = {document.data(), rows, width, width};
      EXPECT_NEAR(MaxSim(x, y, All(rows)), Exact(x, y, All(rows)),
                  1e-6 * static_cast<double>(queries * width))
          << queries << " by " << rows << " of " << width;
    }
  }
}

class MaxSimRowsTest : public ::testing::Test {
 protected:
  const std::vector<float> query_ = RandomValues(3 * 20, 1);
  std::vector<float> document_ = RandomValues(9 * 20, 2);
  const MatrixView<const float> x_ = {query_.data(), 3, 20, 20};
  const MatrixView<const float> y_ = {document_.data(), 9, 20, 20};
};

TEST_F(MaxSimRowsTest, TakesSomeRowsInAnyOrder) {
  const std::vector<int32_t> some = {1, 2, 5, 7, 8}, turned = {8, 5, 1, 7, 2};
  EXPECT_NEAR(MaxSim(x_, y_, some), Exact(x_, y_, some), 1e-5);
  EXPECT_EQ(MaxSim(x_, y_, some), MaxSim(x_, y_, turned));
  EXPECT_EQ(MaxSim(x_, y_, {}), 0);
  EXPECT_EQ(MaxSim({query_.data(), 0, 20, 20}, y_, some), 0);
}

TEST_F(MaxSimRowsTest, NanStays) {
  document_[3 * 20 + 17] = std::nanf("");
  EXPECT_TRUE(std::isnan(MaxSim(x_, y_, All(9))));
  EXPECT_FALSE(std::isnan(MaxSim(x_, y_, std::vector<int32_t>{2, 4})));
}

}  // namespace max_sim_test
}  // namespace attendant
