#include "engine/base/matrix_view.h"

#include <gtest/gtest.h>

namespace attendant {
namespace matrix_view_test {

TEST(MatrixView, RowsAndColumnsKeepTheStride) {
  float values[12];
  for (int i = 0; i < 12; ++i) values[i] = static_cast<float>(i);
  const MatrixView<float> matrix{values, 3, 4, 4};
  const MatrixView<float> inner = matrix.Rows(1, 2).Columns(2, 2);
  EXPECT_EQ(inner.rows, 2);
  EXPECT_EQ(inner.cols, 2);
  EXPECT_EQ(inner.row(0)[0], 6);
  EXPECT_EQ(inner.row(1)[1], 11);
  const MatrixView<const float> read_only = inner;
  EXPECT_EQ(read_only.row(1), inner.row(1));
}

}  // namespace matrix_view_test
}  // namespace attendant
