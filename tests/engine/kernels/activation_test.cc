#include "engine/kernels/activation.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "absl/base/casts.h"
#include "engine/kernels/convert.h"
#include "engine/kernels/isa.h"
#include "gmock/gmock.h"
#include "tests/reference/reference.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/random_values.h"

namespace attendant {
namespace activation_test {

constexpr Activation kAll[] = {Activation::kIdentity,  Activation::kGelu,   Activation::kGeluTanh,
                               Activation::kQuickGelu, Activation::kRelu,   Activation::kSilu,
                               Activation::kTanh,      Activation::kSigmoid};

class ActivationTest : public testing::TestWithParam<Activation> {};

TEST_P(ActivationTest, MatchesFloat64OnADenseGrid) {
  constexpr int64_t kPoints = 400001;
  std::vector<float> x(kPoints), y;
  for (int64_t i = 0; i < kPoints; ++i) x[i] = static_cast<float>(-20 + 40.0 * i / (kPoints - 1));
  y = x;
  Activate(GetParam(), ViewOf(y, 1, kPoints));
  double worst = 0, worst_at = 0;
  for (int64_t i = 0; i < kPoints; ++i) {
    const double expected = reference::Activate(GetParam(), static_cast<double>(x[i]));
    const double ulp = std::nextafter(std::abs(y[i]), 1e30f) - std::abs(y[i]);
    const double excess = std::abs(y[i] - expected) / std::max(5e-7, ulp);
    if (excess > worst) worst = excess, worst_at = x[i];
  }
  EXPECT_LE(worst, 1.0) << "of the permitted error, at " << worst_at;
}

TEST_P(ActivationTest, MatchesFloat64OfTinyAndHugeNumbers) {
  const std::vector<float> x = {0.0f,  -0.0f,  1e-30f, -1e-30f, 1e-6f, -1e-6f,
                                25.0f, -25.0f, 1e4f,   -1e4f,   1e30f, -1e30f};
  std::vector<float> y = x;
  Activate(GetParam(), ViewOf(y, 1, static_cast<int64_t>(y.size())));
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = reference::Activate(GetParam(), static_cast<double>(x[i]));
    EXPECT_NEAR(y[i], expected, 5e-7 + 1e-6 * std::abs(expected)) << "x = " << x[i];
  }
}

TEST_P(ActivationTest, KeepsNanAmongNumbers) {
  std::vector<float> x(37, 1.0f);
  x[3] = x[36] = std::numeric_limits<float>::quiet_NaN();
  Activate(GetParam(), ViewOf(x, 1, 37));
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(std::isnan(x[i]), i == 3 || i == 36) << i;
}

TEST_P(ActivationTest, HasTheLimitsAtInfinity) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> x = {kInfinity, kInfinity};
  Activate(GetParam(), ViewOf(x, 1, 2));
  const bool bounded = GetParam() == Activation::kTanh || GetParam() == Activation::kSigmoid;
  EXPECT_EQ(x[0], bounded ? 1.0f : kInfinity);
  EXPECT_EQ(x[1], x[0]);
}

TEST_P(ActivationTest, InvarianceOfAnElementToItsPlace) {
  const std::vector<float> value = RandomValues(1, 7, 3.0f);
  std::vector<float> alone = value;
  Activate(GetParam(), ViewOf(alone, 1, 1));
  for (int64_t size = 1; size <= 70; ++size) {
    std::vector<float> row(size, value[0]);
    Activate(GetParam(), ViewOf(row, 1, size));
    for (int64_t i = 0; i < size; ++i)
      ASSERT_EQ(std::memcmp(&row[i], &alone[0], sizeof(float)), 0) << size;
  }
}

TEST_P(ActivationTest, TouchesNothingOutsideOfTheBlock) {
  for (int64_t cols = 1; cols <= 40; ++cols) {
    const int64_t stride = 45, rows = 3;
    GuardedBuffer<float> buffer((rows - 1) * stride + cols);
    for (float& value : buffer.span()) value = 0.5f;
    Activate(GetParam(), {buffer.data(), rows, cols, stride});
    for (int64_t r = 0; r + 1 < rows; ++r) {
      for (int64_t c = cols; c < stride; ++c) ASSERT_EQ(buffer[r * stride + c], 0.5f);
    }
  }
}

// Compares rows of bfloat16, which begin `stride` elements after each other, with rounded float32.
// Elements outside of the rows must still be kUntouched.
constexpr uint16_t kUntouched = 0x1234;
void ExpectRounded(const std::vector<float>& expected, int64_t cols, int64_t stride,
                   const std::vector<uint16_t>& rows) {
  std::vector<uint16_t> all(rows.size(), kUntouched);
  for (int64_t r = 0; r * cols < static_cast<int64_t>(expected.size()); ++r)
    FromFloat(&expected[r * cols], cols, DataType::kBFloat16, &all[r * stride]);
  EXPECT_EQ(rows, all) << cols << " columns";
}

TEST_P(ActivationTest, RoundsWhatItMakesToBf16) {
  if (!HasBf16Units()) return;
  constexpr int64_t kRows = 3, kStride = 140;
  for (int64_t cols = 1; cols <= 130; ++cols) {
    std::vector<float> y = RandomValues(kRows * cols, 11, 3.0f);
    std::vector<uint16_t> rounded(kRows * kStride, kUntouched);
    ActivateToBf16(GetParam(), ViewOf(y, kRows, cols), {rounded.data(), kStride});
    Activate(GetParam(), ViewOf(y, kRows, cols));
    ExpectRounded(y, cols, kStride, rounded);
  }
}

TEST_P(ActivationTest, RoundsWhatItDequantizesToBf16) {
  if (!HasBf16Units()) return;
  constexpr int64_t kRows = 3, kStride = 140;
  const std::vector<float> row_scales = RandomValues(kRows, 12, 0.1f);
  for (const bool integers : {false, true}) {
    for (int64_t cols = 1; cols <= 130; ++cols) {
      const std::vector<float> column_scales = RandomValues(cols, 13, 0.1f);
      const std::vector<float> bias = RandomValues(cols, 14, 1.0f);
      std::vector<float> y = RandomValues(kRows * cols, 15, 100.0f);
      for (float& sum : y) {
        if (integers) sum = absl::bit_cast<float>(static_cast<int32_t>(sum));
      }
      const Dequantization dequantization = {row_scales.data(), column_scales.data(), bias.data(),
                                             integers};
      std::vector<uint16_t> rounded(kRows * kStride, kUntouched);
      ActivateToBf16(GetParam(), ViewOf(y, kRows, cols), {rounded.data(), kStride}, dequantization);
      Activate(GetParam(), ViewOf(y, kRows, cols), ViewOf(y, kRows, cols), dequantization);
      ExpectRounded(y, cols, kStride, rounded);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ActivationTest, testing::ValuesIn(kAll),
                         [](const auto& test) { return std::string(Name(test.param)); });

}  // namespace activation_test
}  // namespace attendant
