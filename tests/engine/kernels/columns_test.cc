#include "engine/kernels/columns.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/random_values.h"

namespace attendant {
namespace columns_test {

// Rows of float32 with a stride that is larger than their width.
struct Rows {
  Rows(int64_t rows, int64_t cols) : values(RandomValues(rows * (cols + 3), 7, 10.0f)) {
    view = {values.data(), rows, cols, cols + 3};
  }
  std::vector<float> values;
  MatrixView<float> view;
};

TEST(ColumnMaxTest, IsThatOfPlainLoopsAtEveryWidth) {
  for (const int64_t rows : {0, 1, 2, 7, 100}) {
    for (int64_t cols = 0; cols < 300; cols += cols < 40 ? 1 : 13) {
      const Rows x(rows, cols);
      const std::vector<float> before = RandomValues(cols, 3, 10.0f);
      GuardedBuffer<float> target(cols);
      std::copy(before.begin(), before.end(), target.data());
      RaiseToColumnMax(x.view, target.data());
      for (int64_t j = 0; j < cols; ++j) {
        float largest = before[j];
        for (int64_t r = 0; r < rows; ++r) largest = std::max(largest, x.view.row(r)[j]);
        EXPECT_EQ(target.data()[j], largest) << rows << " x " << cols << ", column " << j;
      }
    }
  }
}

TEST(ColumnMaxTest, IsTheSameInSeveralCalls) {
  const Rows x(20, 150);
  std::vector<float> at_once(150, 0.0f), in_parts(150, 0.0f);
  RaiseToColumnMax(x.view, at_once.data());
  for (const auto& [first, rows] : {std::pair{13, 7}, {0, 5}, {5, 8}}) {
    RaiseToColumnMax(x.view.Rows(first, rows), in_parts.data());
  }
  EXPECT_EQ(at_once, in_parts);
}

TEST(ColumnMaxTest, KeepsWhatIsNotFiniteInItsColumn) {
  const float nan = std::nanf("");
  for (const int64_t cols : {100, 260}) {
    const Rows x(3, cols);
    x.view.row(0)[8] = nan;
    x.view.row(1)[64] = nan;
    x.view.row(2)[99] = std::numeric_limits<float>::infinity();
    std::vector<float> target(cols, 0.0f);
    target[41] = nan;
    RaiseToColumnMax(x.view, target.data());
    for (int64_t j = 0; j < cols; ++j) {
      EXPECT_EQ(std::isnan(target[j]), j == 8 || j == 41 || j == 64) << j;
    }
    EXPECT_TRUE(std::isinf(target[99]));
  }
}

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

}  // namespace columns_test
}  // namespace attendant
