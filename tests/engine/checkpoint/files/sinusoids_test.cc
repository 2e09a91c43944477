#include "engine/checkpoint/files/sinusoids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace attendant {
namespace sinusoids_test {

using ::testing::ElementsAre;

auto Near(float x) { return ::testing::FloatNear(x, 1e-7f); }

std::vector<float> Fill(Sinusoids kind, int64_t positions, int64_t width,
                        std::optional<int64_t> zero_row = std::nullopt) {
  std::vector<float> table(positions * width, 7.0f);
  FillSinusoids({.kind = kind, .positions = positions, .width = width, .zero_row = zero_row},
                absl::MakeSpan(table));
  return table;
}

// F48.
TEST(SinusoidsTest, InterleavesSinesAndCosines) {
  const std::vector<float> table = Fill(Sinusoids::kInterleaved, 2, 4);
  EXPECT_THAT(table, ElementsAre(0, 1, 0, 1, Near(.84147098f), Near(.54030231f), Near(.00999983f),
                                 Near(.99995000f)));
}

TEST(SinusoidsTest, PutsCosinesBehindSines) {
  const std::vector<float> table = Fill(Sinusoids::kHalves, 2, 4);
  EXPECT_THAT(table, ElementsAre(0, 0, 1, 1, Near(.84147098f), Near(.0001f), Near(.54030231f), 1));
}

TEST(SinusoidsTest, EndsOddWidthsWithASine) {
  EXPECT_THAT(Fill(Sinusoids::kInterleaved, 1, 3), ElementsAre(0, 1, 0));
}

TEST(SinusoidsTest, HasTheAnglesOfTheInterleavedOnesInHalves) {
  EXPECT_THAT(Fill(Sinusoids::kHalvesOfAll, 2, 4),
              ElementsAre(0, 0, 1, 1, Near(.84147098f), Near(.00999983f), Near(.54030231f),
                          Near(.99995000f)));
}

TEST(SinusoidsTest, LeavesOnePositionOut) {
  EXPECT_THAT(Fill(Sinusoids::kHalves, 2, 4, 0),
              ElementsAre(0, 0, 0, 0, Near(.84147098f), Near(.0001f), Near(.54030231f), 1));
}

}  // namespace sinusoids_test
}  // namespace attendant
