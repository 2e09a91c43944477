#include "engine/kernels/gemm/kernel_check.h"

#include "engine/kernels/gemm/kernel_table.h"
#include "gmock/gmock.h"

namespace attendant {
namespace kernel_check_test {

using testing::ElementsAre;
using testing::IsEmpty;

// Returns the results of one column: row r has probe r % 2, whose values are 10 and 20, plus
// `deviation` in the last row.
TileCandidate Candidate(int64_t rows, float offset, float deviation) {
  TileCandidate candidate{rows, {}};
  for (int64_t r = 0; r < rows; ++r)
    candidate.results.push_back((r % 2 == 0 ? 10.0f : 20.0f) + offset);
  candidate.results.back() += deviation;
  return candidate;
}

TEST(AgreeingCandidatesTest, KeepsAllThatAgree) {
  EXPECT_THAT(
      AgreeingCandidates({Candidate(8, 0, 0), Candidate(4, 0, 0), Candidate(2, 0, 0)}, 2, 1),
      ElementsAre(0, 1, 2));
}

TEST(AgreeingCandidatesTest, DropsSizesWhoseRowsDifferAmongThemselves) {
  EXPECT_THAT(
      AgreeingCandidates({Candidate(8, 0, 0), Candidate(4, 0, 1), Candidate(2, 0, 0)}, 2, 1),
      ElementsAre(0, 2));
}

TEST(AgreeingCandidatesTest, FollowsTheSmallestUniformSize) {
  EXPECT_THAT(
      AgreeingCandidates({Candidate(8, 5, 0), Candidate(6, 0, 0), Candidate(4, 0, 0)}, 2, 1),
      ElementsAre(1, 2));
  EXPECT_THAT(
      AgreeingCandidates({Candidate(8, 5, 0), Candidate(6, 5, 0), Candidate(4, 0, 1)}, 2, 1),
      ElementsAre(0, 1));
}

TEST(AgreeingCandidatesTest, DoesNotFollowASizeThatLacksProbes) {
  EXPECT_THAT(
      AgreeingCandidates({Candidate(8, 0, 0), Candidate(4, 0, 0), Candidate(1, 5, 0)}, 2, 1),
      ElementsAre(0, 1));
  EXPECT_THAT(
      AgreeingCandidates({Candidate(8, 0, 0), Candidate(4, 0, 0), Candidate(1, 0, 0)}, 2, 1),
      ElementsAre(0, 1, 2));
  EXPECT_THAT(AgreeingCandidates({Candidate(1, 0, 0)}, 2, 1), IsEmpty());
}

TEST(AgreeingCandidatesTest, MayKeepNone) {
  EXPECT_THAT(AgreeingCandidates({Candidate(8, 0, 1), Candidate(4, 0, 2)}, 2, 1), IsEmpty());
}

// Returns the kernels of panels of a float32 layer.
const PanelKernels& KernelsOf(int64_t width) {
  return FindPanelKernels({.in = 96, .width = width, .k_block = 96});
}

TEST(AgreeingTilesTest, AreAllThatAreLeftOfCheckedKernels) {
  const PanelKernels& kernels = KernelsOf(128);
  EXPECT_EQ(AgreeingTiles(kernels).size(), kernels.tiles.size());
}

TEST(GiveSameBitsTest, IsTrueOfAPanelAndItself) {
  EXPECT_TRUE(GiveSameBits(KernelsOf(128), KernelsOf(128)));
}

TEST(GiveSameBitsTest, IsFalseOfPanelsThatAreWider) {
  EXPECT_FALSE(GiveSameBits(KernelsOf(64), KernelsOf(128)));
}

}  // namespace kernel_check_test
}  // namespace attendant
