#include "engine/kernels/norm/norm.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "tests/reference/reference.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/random_values.h"

namespace attendant {
namespace norm_test {

using reference::Matrix;

constexpr int64_t kRows = 37;
constexpr float kEpsilon = 1e-5f;

class NormTest : public testing::TestWithParam<int64_t> {
 protected:
  const int64_t width_ = GetParam();
  const ThreadTeam team_{2};
  const std::vector<float> x_ = RandomValues(kRows * width_, 1, 3.0f);
  const std::vector<float> residual_ = RandomValues(kRows * width_, 2, 3.0f);
  const std::vector<float> gamma_ = RandomValues(width_, 3, 2.0f);
  const std::vector<float> beta_ = RandomValues(width_, 4, 2.0f);
  const LayerNormWeights weights_{gamma_, beta_, kEpsilon};
};

TEST_P(NormTest, LayerNormMatchesFloat64) {
  std::vector<float> y(x_.size());
  LayerNorm(team_, ViewOf(x_, kRows, width_), weights_, ViewOf(y, kRows, width_));
  const Matrix expected =
      reference::LayerNorm(Matrix(ViewOf(x_, kRows, width_)), gamma_, beta_, kEpsilon);
  EXPECT_LT(reference::MaxDifference(expected, ViewOf(y, kRows, width_)), 3e-6);
}

TEST_P(NormTest, AffineScalesAndShifts) {
  std::vector<float> y(x_.size()), without_beta(x_.size());
  LayerNorm(team_, ViewOf(x_, kRows, width_), {gamma_, beta_, 0, NormKind::kAffine},
            ViewOf(y, kRows, width_));
  LayerNorm(team_, ViewOf(x_, kRows, width_), {gamma_, {}, 0, NormKind::kAffine},
            ViewOf(without_beta, kRows, width_));
  for (size_t i = 0; i < x_.size(); ++i) {
    const float scaled = gamma_[i % width_] * x_[i];
    ASSERT_EQ(without_beta[i], scaled);
    ASSERT_EQ(y[i], scaled + beta_[i % width_]);
  }
}

TEST_P(NormTest, LayerNormWithoutBetaMatchesFloat64) {
  std::vector<float> y(x_.size());
  LayerNorm(team_, ViewOf(x_, kRows, width_), {gamma_, {}, kEpsilon}, ViewOf(y, kRows, width_));
  const Matrix expected =
      reference::LayerNorm(Matrix(ViewOf(x_, kRows, width_)), gamma_, {}, kEpsilon);
  EXPECT_LT(reference::MaxDifference(expected, ViewOf(y, kRows, width_)), 3e-6);
}

TEST_P(NormTest, AddLayerNormMatchesFloat64InPlaceOfEitherOperand) {
  const Matrix sum =
      reference::Add(Matrix(ViewOf(x_, kRows, width_)), Matrix(ViewOf(residual_, kRows, width_)));
  const Matrix expected = reference::LayerNorm(sum, gamma_, beta_, kEpsilon);
  std::vector<float> x = x_, residual = residual_;
  AddLayerNorm(team_, ViewOf(x, kRows, width_), ViewOf(residual_, kRows, width_), weights_,
               ViewOf(x, kRows, width_));
  AddLayerNorm(team_, ViewOf(x_, kRows, width_), ViewOf(residual, kRows, width_), weights_,
               ViewOf(residual, kRows, width_));
  EXPECT_EQ(x, residual);
  // If there are only a few numbers, little but their rounding may be left once their mean is
  // subtracted, so the tolerance allows for the rounding of the sum.
  EXPECT_LT(reference::MaxDifference(expected, ViewOf(x, kRows, width_)),
            width_ <= 4 ? 1e-3 : 2e-5);
}

TEST_P(NormTest, AddNormalizedAddsTheNorm) {
  std::vector<float> norm(x_.size()), expected(x_.size()), branch = residual_, y = x_;
  const MatrixView<float> x = ViewOf(y, kRows, width_);
  LayerNorm(team_, ViewOf(residual_, kRows, width_), weights_, ViewOf(norm, kRows, width_));
  Add(team_, x, ViewOf(norm, kRows, width_), ViewOf(expected, kRows, width_));
  AddNormalized(team_, x, ViewOf(branch, kRows, width_), weights_, x);
  EXPECT_EQ(y, expected);
  EXPECT_EQ(branch, norm);
}

TEST_P(NormTest, RmsNormMatchesFloat64) {
  std::vector<float> y(x_.size());
  LayerNorm(team_, ViewOf(x_, kRows, width_), {gamma_, {}, kEpsilon, NormKind::kRms},
            ViewOf(y, kRows, width_));
  const Matrix expected = reference::RmsNorm(Matrix(ViewOf(x_, kRows, width_)), gamma_, kEpsilon);
  EXPECT_LT(reference::MaxDifference(expected, ViewOf(y, kRows, width_)), 3e-6);
}

TEST_P(NormTest, MultiplyMatchesFloat64) {
  std::vector<float> y(x_.size());
  Multiply(team_, ViewOf(x_, kRows, width_), ViewOf(residual_, kRows, width_),
           ViewOf(y, kRows, width_));
  for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], x_[i] * residual_[i]);
}

TEST_P(NormTest, AddMatchesFloat64) {
  std::vector<float> y(x_.size());
  Add(team_, ViewOf(x_, kRows, width_), ViewOf(residual_, kRows, width_), ViewOf(y, kRows, width_));
  for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], x_[i] + residual_[i]);
}

TEST_P(NormTest, InvarianceToTeamAndPlace) {
  std::vector<float> y(x_.size());
  LayerNorm(team_, ViewOf(x_, kRows, width_), weights_, ViewOf(y, kRows, width_));
  std::vector<float> row(width_);
  for (int64_t r = 0; r < kRows; ++r) {
    LayerNorm(ThreadTeam(1), ViewOf(x_, kRows, width_).Rows(r, 1), weights_,
              ViewOf(row, 1, width_));
    ASSERT_TRUE(std::equal(row.begin(), row.end(), y.begin() + r * width_)) << r;
  }
}

TEST_P(NormTest, TouchesNothingBeyondItsOperands) {
  GuardedBuffer<float> x(kRows * width_), y(kRows * width_), residual(kRows * width_),
      gamma(width_), beta(width_);
  const auto view = [&](const GuardedBuffer<float>& buffer) {
    return MatrixView<float>{buffer.data(), kRows, width_, width_};
  };
  const LayerNormWeights weights{gamma.span(), beta.span(), kEpsilon};
  LayerNorm(team_, view(x), weights, view(y));
  AddLayerNorm(team_, view(x), view(residual), weights, view(y));
  AddNormalized(team_, view(x), view(residual), weights, view(y));
  LayerNorm(team_, view(x), {gamma.span(), {}, kEpsilon, NormKind::kRms}, view(y));
  Add(team_, view(x), view(residual), view(y));
  Multiply(team_, view(x), view(residual), view(y));
  for (const float value : y.span()) ASSERT_EQ(value, 0.0f);
}

INSTANTIATE_TEST_SUITE_P(Widths, NormTest,
                         testing::Values(1, 2, 3, 4, 7, 8, 15, 16, 17, 26, 33, 312, 384, 768, 1023),
                         testing::PrintToStringParamName());

TEST(LayerNormTest, MatchesFloat64FarFromZero) {
  const int64_t width = 768;
  std::vector<float> x = RandomValues(4 * width, 5), y(x.size());
  for (float& value : x) value += 1000.0f;
  const std::vector<float> gamma(width, 1.0f);
  LayerNorm(ThreadTeam(1), ViewOf(x, 4, width), {gamma, {}, 1e-12f}, ViewOf(y, 4, width));
  const Matrix expected = reference::LayerNorm(Matrix(ViewOf(x, 4, width)), gamma, {}, 1e-12f);
  EXPECT_LT(reference::MaxDifference(expected, ViewOf(y, 4, width)), 1e-6);
}

TEST(RmsNormTest, DoesNotCenter) {
  const std::vector<float> x = {1, 2, 3, 4}, gamma(4, 1.0f);
  std::vector<float> y(4);
  LayerNorm(ThreadTeam(1), ViewOf(x, 1, 4), {gamma, {}, 1e-6f, NormKind::kRms}, ViewOf(y, 1, 4));
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(y[i], 0.36514835 * (i + 1), 3e-7);
}

TEST(LayerNormTest, CentersByTheBiasedVariance) {
  const std::vector<float> x = {1, 2, 3, 4}, gamma(4, 1.0f);
  std::vector<float> y(4);
  LayerNorm(ThreadTeam(1), ViewOf(x, 1, 4), {gamma, {}, 1e-5f}, ViewOf(y, 1, 4));
  const double expected[] = {-1.34163542, -0.44721181, 0.44721181, 1.34163542};
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(y[i], expected[i], 3e-7);
}

TEST(LayerNormTest, KeepsNanInItsRow) {
  const int64_t width = 19;
  std::vector<float> x = RandomValues(3 * width, 6), y(x.size());
  x[width + 4] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> gamma(width, 1.0f);
  LayerNorm(ThreadTeam(2), ViewOf(x, 3, width), {gamma, {}, kEpsilon}, ViewOf(y, 3, width));
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / width == 1) << i;
}

}  // namespace norm_test
}  // namespace attendant
