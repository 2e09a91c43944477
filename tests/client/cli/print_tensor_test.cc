#include "client/cli/print_tensor.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <sstream>

namespace attendant::client {
namespace print_tensor_test {

std::string Printed(const Tensor& tensor) {
  std::ostringstream out;
  PrintTensor(out, "t", tensor);
  return out.str();
}

TEST(PrintTensorTest, AlignsColumns) {
  EXPECT_EQ(Printed(FloatTensor({1, 2, 2}, {1.936621f, 16.5f, -0.25f, 0.0f})),
            "t float32 [1, 2, 2]\n"
            "  [0]\n"
            "     1.936621 16.500000\n"
            "    -0.250000  0.000000\n");
}

TEST(PrintTensorTest, PrintsVectorsScalarsAndIntegers) {
  EXPECT_EQ(Printed(Int64Tensor({3}, {1, -20, 3})), "t int64 [3]\n      1 -20   3\n");
  EXPECT_EQ(Printed(FloatTensor({}, {2.0f})), "t float32 []\n    2.000000\n");
  EXPECT_EQ(Printed(FloatTensor({0, 4}, {})), "t float32 [0, 4]\n");
}

TEST(PrintTensorTest, UsesExponentsForWideRanges) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Printed(FloatTensor({3}, {1e-7f, 1.0f, -inf})),
            "t float32 [3]\n    1.000000e-07 1.000000e+00         -inf\n");
}

TEST(PrintTensorTest, ElidesTheMiddle) {
  std::vector<int64_t> values(9 * 10);
  std::iota(values.begin(), values.end(), 0);
  EXPECT_EQ(Printed(Int64Tensor({9, 10}, values)),
            "t int64 [9, 10]\n"
            "     0  1  2 …  7  8  9\n"
            "    10 11 12 … 17 18 19\n"
            "    20 21 22 … 27 28 29\n"
            "    …\n"
            "    60 61 62 … 67 68 69\n"
            "    70 71 72 … 77 78 79\n"
            "    80 81 82 … 87 88 89\n");
}

TEST(PrintTensorTest, ElidesBlocks) {
  const std::string printed = Printed(Int64Tensor({9, 1, 1}, {0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(printed,
            "t int64 [9, 1, 1]\n  [0]\n    0\n  [1]\n    1\n  [2]\n    2\n  […]\n"
            "  [6]\n    6\n  [7]\n    7\n  [8]\n    8\n");
}

}  // namespace print_tensor_test
}  // namespace attendant::client
