#include "engine/kernels/column_sums.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/random_values.h"

namespace attendant {
namespace column_sums_test {

// Rows of float32 with a stride that is larger than their width.
struct Rows {
  Rows(int64_t rows, int64_t cols) : values(RandomValues(rows * (cols + 3), 7, 10.0f)) {
    view = {values.data(), rows, cols, cols + 3};
  }
  std::vector<float> values;
  MatrixView<float> view;
};

double SumOfColumn(MatrixView<const float> x, const std::vector<double>& weights, int64_t j) {
  double sum = 0;
  for (int64_t r = 0; r < x.rows; ++r) sum += weights[r] * x.row(r)[j];
  return sum;
}

TEST(ColumnSumsTest, MatchesFloat64AtEveryWidth) {
  for (const int64_t rows : {0, 1, 2, 7, 100}) {
    for (int64_t cols = 0; cols < 140; cols += cols < 20 ? 1 : 13) {
      const Rows x(rows, cols);
      GuardedBuffer<float> sums(cols), weighted(cols);
      std::vector<double> weights(rows);
      for (int64_t r = 0; r < rows; ++r) weights[r] = static_cast<double>(3 * r + 1);
      ColumnSums(x.view, 3.0, sums.data());
      WeightedColumnSums(x.view, weights, 3.0, weighted.data());
      for (int64_t j = 0; j < cols; ++j) {
        const std::vector<double> ones(rows, 1.0);
        EXPECT_EQ(sums.data()[j], static_cast<float>(SumOfColumn(x.view, ones, j) / 3.0));
        EXPECT_EQ(weighted.data()[j], static_cast<float>(SumOfColumn(x.view, weights, j) / 3.0));
      }
    }
  }
}

TEST(ColumnSumsTest, KeepsWhatIsNotFiniteInItsColumn) {
  const Rows x(3, 100);
  x.view.row(1)[64] = std::nanf("");
  x.view.row(2)[99] = std::numeric_limits<float>::infinity();
  std::vector<float> sums(100);
  ColumnSums(x.view, 1.0, sums.data());
  for (int64_t j = 0; j < 100; ++j) EXPECT_EQ(std::isfinite(sums[j]), j != 64 && j != 99) << j;
  EXPECT_TRUE(std::isnan(sums[64]));
}

}  // namespace column_sums_test
}  // namespace attendant
