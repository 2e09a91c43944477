#include "engine/kernels/rope.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/random_values.h"

namespace attendant {
namespace rope_test {

struct Shape {
  int64_t heads, head_width, rotary_width;
  RotaryPairs pairs;
};

void PrintTo(const Shape& shape, std::ostream* out) {
  *out << shape.heads << "x" << shape.head_width << "_" << shape.rotary_width
       << (shape.pairs == RotaryPairs::kHalves ? "_halves" : "_interleaved");
}

class RotateTest : public testing::TestWithParam<Shape> {};

constexpr int64_t kRows = 37;
constexpr double kBase = 10000;

RotaryTable Table(int64_t positions, int64_t width, RotaryPairs pairs, float amplitude = 1) {
  return RotaryTable(positions, {RotaryFrequencies(width, kBase), amplitude, pairs});
}

std::vector<int32_t> SomePositions() {
  std::vector<int32_t> positions;
  for (int32_t i = 0; i < kRows; ++i) positions.push_back(i * 5 % 200);
  return positions;
}

TEST_P(RotateTest, MatchesFloat64) {
  const auto [heads, head_width, rotary_width, pairs] = GetParam();
  const int64_t width = heads * head_width;
  const std::vector<float> x = RandomValues(kRows * width, 1);
  std::vector<float> y = x;
  const std::vector<int32_t> positions = SomePositions();
  Rotate(Table(200, rotary_width, pairs), positions, head_width, ViewOf(y, kRows, width));
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t head = r * width + h * head_width;
      for (int64_t j = 0; j < rotary_width / 2; ++j) {
        const bool halves = pairs == RotaryPairs::kHalves;
        const int64_t a = head + (halves ? j : 2 * j);
        const int64_t b = head + (halves ? j + rotary_width / 2 : 2 * j + 1);
        const double angle = positions[r] * std::pow(kBase, -2.0 * j / rotary_width);
        ASSERT_NEAR(y[a], x[a] * std::cos(angle) - x[b] * std::sin(angle), 3e-7);
        ASSERT_NEAR(y[b], x[b] * std::cos(angle) + x[a] * std::sin(angle), 3e-7);
      }
      for (int64_t j = rotary_width; j < head_width; ++j) ASSERT_EQ(y[head + j], x[head + j]);
    }
  }
}

TEST_P(RotateTest, InvarianceToPlace) {
  const auto [heads, head_width, rotary_width, pairs] = GetParam();
  const int64_t width = heads * head_width;
  const RotaryTable table = Table(200, rotary_width, pairs);
  const std::vector<int32_t> positions = SomePositions();
  const std::vector<float> x = RandomValues(kRows * width, 1);
  std::vector<float> together = x, alone = x;
  Rotate(table, positions, head_width, ViewOf(together, kRows, width));
  for (int64_t r = 0; r < kRows; ++r) {
    Rotate(table, absl::MakeSpan(positions).subspan(r, 1), head_width,
           ViewOf(alone, kRows, width).Rows(r, 1));
  }
  EXPECT_EQ(together, alone);
}

TEST_P(RotateTest, TouchesNothingBeyondItsOperands) {
  const auto [heads, head_width, rotary_width, pairs] = GetParam();
  GuardedBuffer<float> x(kRows * heads * head_width);
  Rotate(Table(200, rotary_width, pairs), SomePositions(), head_width,
         {x.data(), kRows, heads * head_width, heads * head_width});
  for (const float value : x.span()) ASSERT_EQ(value, 0.0f);
}

INSTANTIATE_TEST_SUITE_P(Shapes, RotateTest,
                         testing::Values(Shape{1, 4, 4, RotaryPairs::kHalves},
                                         Shape{3, 26, 26, RotaryPairs::kHalves},
                                         Shape{2, 64, 64, RotaryPairs::kHalves},
                                         Shape{2, 64, 24, RotaryPairs::kHalves},
                                         Shape{2, 64, 64, RotaryPairs::kInterleaved},
                                         Shape{3, 26, 10, RotaryPairs::kInterleaved}),
                         testing::PrintToStringParamName());

std::vector<float> TurnedByOne(RotaryPairs pairs) {
  std::vector<float> x = {1, 2, 3, 4};
  Rotate(Table(2, 4, pairs), {1}, 4, ViewOf(x, 1, 4));
  return x;
}

TEST(RotateTest, AStretchSlowsEveryPair) {
  const RotaryTable plain = Table(2, 26, RotaryPairs::kHalves);
  const RotaryTable stretched(5, {RotaryFrequencies(26, kBase, /*stretch=*/4)});
  for (int64_t j = 0; j < 26; ++j) EXPECT_FLOAT_EQ(stretched.cosines(4)[j], plain.cosines(1)[j]);
}

TEST(RotateTest, AnAmplitudeMultipliesWhatIsTurned) {
  const RotaryTable plain = Table(5, 10, RotaryPairs::kHalves);
  const RotaryTable louder = Table(5, 10, RotaryPairs::kHalves, 1.25f);
  for (int64_t j = 0; j < 10; ++j) {
    EXPECT_FLOAT_EQ(louder.cosines(4)[j], 1.25f * plain.cosines(4)[j]);
  }
}

TEST(RotateTest, PairsHalvesOrNeighbours) {
  const double halves[] = {-1.98411065, 1.95990067, 2.4623779, 4.01979967};
  const double interleaved[] = {-1.14263966, 1.9220756, 2.95985067, 4.0297995};
  for (int j = 0; j < 4; ++j) {
    EXPECT_NEAR(TurnedByOne(RotaryPairs::kHalves)[j], halves[j], 4e-7);
    EXPECT_NEAR(TurnedByOne(RotaryPairs::kInterleaved)[j], interleaved[j], 4e-7);
  }
}

}  // namespace rope_test
}  // namespace attendant
