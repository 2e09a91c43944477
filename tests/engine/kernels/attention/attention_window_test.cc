// Tests of attention to the keys of a window and to those that a pattern or a list adds.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "tests/engine/kernels/attention/attention_batch.h"

namespace attendant {
namespace attention_window_test {

class AttentionWindowTest : public AttentionTest {
 protected:
  AttentionShape Windowed(int64_t window) const {
    AttentionShape shape = ShapeOf(2, 26, 26);
    shape.window = window;
    return shape;
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, AttentionWindowTest, testing::ValuesIn(AttentionModes()),
                         [](const auto& test) { return NameOf(test.param); });

TEST_P(AttentionWindowTest, MatchesFloat64AtAnyWidthAndLength) {
  for (const int64_t window : {1, 2, 7, 64, 127, 129, 600, 5000}) {
    PackedBatch batch(Windowed(window), {1, 2, 9, 33, 97, 130, 515, 1030});
    batch.ExpectMatchesReference();
  }
}

// Returns the positions of `length` tokens, with gaps of up to `widest` between them.
std::vector<int32_t> Holed(int64_t length, int32_t widest, uint32_t seed) {
  std::vector<int32_t> positions;
  int32_t next = 0;
  for (const float value : RandomValues(length, seed)) {
    next += 1 + static_cast<int32_t>(std::abs(value) * static_cast<float>(widest));
    positions.push_back(next);
  }
  return positions;
}

TEST_P(AttentionWindowTest, GoesByPositions) {
  for (const int64_t window : {1, 3, 65}) {
    PackedBatch batch(Windowed(window), {40, 700, 130});
    const std::vector<int32_t> sparse = Holed(40, 6, 1), dense = Holed(700, 2, 2);
    batch.sequences[0].positions = sparse;
    batch.sequences[1].positions = dense;
    batch.ExpectMatchesReference();
  }
}

// Returns patterns with global tokens, and with blocks that have drawn or listed blocks or none.
std::vector<AttentionPattern> Patterns() {
  return {
      {.first_global = 1},
      {.block = 3, .last_global = 2},
      {.block = 16, .first_global = 1, .last_global = 1, .first_repeats = 3, .full_up_to = 97},
      {.block = 64, .first_global = 2, .last_global = 1, .first_repeats = 1},
      {.listed = BlockLists({{5, 31}, {0, 7}, {6, 0}, {32, 96}, {32, 40}, {129, 3}, {90, 9000}})},
      {.block = 16,
       .first_global = 1,
       .last_global = 1,
       .listed = BlockLists({{2, 7}, {3, 0}, {7, 5}, {4, 60}, {60, 4}, {33, 1}, {33, 2}})},
      {.block = 7,
       .first_repeats = 2,
       .listed = BlockLists({{4, 0}, {4, 9}, {5, 13}, {100, 30}}, {11, 70, 5000})}};
}

TEST_P(AttentionWindowTest, PatternsMatchFloat64AtAnyLength) {
  for (const AttentionPattern& pattern : Patterns()) {
    for (const int64_t window : {1, 2, 40}) {
      AttentionShape shape = Windowed(window);
      shape.pattern = pattern;
      PackedBatch batch(shape, {1, 2, 9, 33, 97, 98, 130, window == 1 ? 1040 : 260});
      batch.ExpectMatchesReference();
    }
  }
}

TEST_P(AttentionWindowTest, PatternsGoByPositionsFromTheFirst) {
  for (const AttentionPattern& pattern : Patterns()) {
    AttentionShape shape = Windowed(1);
    shape.pattern = pattern;
    PackedBatch batch(shape, {40, 700, 130});
    const std::vector<int32_t> sparse = Holed(40, 6, 1), dense = Holed(700, 2, 2);
    batch.sequences[0].positions = sparse;
    batch.sequences[1].positions = dense;
    batch.ExpectMatchesReference();
  }
}

TEST_P(AttentionWindowTest, BitsDoNotDependOnNeighbouringQueries) {
  constexpr int64_t kLength = 1540;
  for (const AttentionPattern& pattern : Patterns()) {
    AttentionShape shape = Windowed(1);
    shape.pattern = pattern;
    PackedBatch batch(shape, {kLength});
    const std::vector<float> all = batch.Run(2);
    for (const int64_t first : {0, 1, 70, 511, 1000, 1530}) {
      const int64_t queries = std::min<int64_t>(kLength - first, 1 + first % 50);
      batch.sequences[0].first_query = first;
      batch.sequences[0].queries = queries;
      const std::vector<float> some = batch.Run(1);
      const int64_t width = batch.context_width();
      EXPECT_EQ(
          std::memcmp(&all[first * width], &some[first * width], queries * width * sizeof(float)),
          0)
          << first << " in blocks of " << pattern.block;
    }
  }
}

TEST_P(AttentionWindowTest, ListedPairsAreVisibleAndNoOthers) {
  constexpr int64_t kLength = 1100, kBlock = 50;
  AttentionShape shape = Windowed(1);
  shape.pattern = {.block = kBlock, .listed = BlockLists({{3, 17}, {3, 21}, {20, 0}}, {9})};
  PackedBatch batch(shape, {kLength});
  const std::vector<float> probabilities = batch.CheckedProbabilities();
  const auto visible = std::count_if(probabilities.begin(), probabilities.end(),
                                     [](float probability) { return probability > 0; });
  // For each of two heads: the window of 22 blocks, three pairs, and the pairs of block 9 and
  // others beyond the window.
  EXPECT_EQ(visible, 2 * (3 * 22 - 2 + 3 + 2 * (22 - 3)) * kBlock * kBlock);
}

// Returns a bias that masks the same pairs as the list.
TEST_P(AttentionWindowTest, ListedBlocksEqualABiasOfAllPairs) {
  constexpr int64_t kLength = 300;
  for (const AttentionPattern& pattern : Patterns()) {
    if (pattern.first_repeats > 0) continue;
    AttentionShape shape = Windowed(1);
    shape.pattern = pattern;
    PackedBatch banded(shape, {kLength});
    std::vector<float> mask(kLength * kLength);
    for (int64_t s = 0; s < kLength; ++s) {
      for (int64_t t = 0; t < kLength; ++t) {
        mask[s * kLength + t] =
            static_cast<float>(reference::WindowMask(1, pattern, kLength, s, t));
      }
    }
    const AttentionBias bias = {mask.data(), 0, kLength, 1};
    PackedBatch dense(ShapeOf(2, 26, 26), {kLength});
    dense.sequences[0].bias = &bias;
    EXPECT_THAT(banded.Run(2), testing::Pointwise(testing::FloatNear(1e-6f), dense.Run(2)));
  }
}

// Keys that no block of queries sees cost nothing: they are not even read.
TEST_P(AttentionWindowTest, KeysInNoListAreNotRead) {
  constexpr int64_t kLength = 2048;
  AttentionShape shape = Windowed(1);
  shape.pattern = {.block = 64, .listed = BlockLists({{0, 31}, {1, 8}})};
  PackedBatch batch(shape, {kLength});
  batch.sequences[0].queries = 128;
  const std::vector<float> expected = batch.Run(1);
  const int64_t width = static_cast<int64_t>(batch.qkv.size()) / kLength;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  // The block of 512 keys from 1024 on has no key that they see.
  std::fill(&batch.qkv[1024 * width], &batch.qkv[1536 * width], nan);
  EXPECT_EQ(batch.Run(1), expected);
}

TEST_P(AttentionWindowTest, ProbabilitiesMatchFloat64) {
  constexpr int64_t kLength = 530;
  PackedBatch batch(Windowed(3), {kLength});
  const std::vector<float> probabilities = batch.CheckedProbabilities();
  for (int64_t row = 0; row < 2 * kLength; ++row) {
    for (int64_t t = 0; t < kLength; ++t) {
      EXPECT_EQ(probabilities[row * kLength + t] > 0, std::abs(row % kLength - t) <= 3);
    }
  }
}

TEST_P(AttentionWindowTest, InvarianceToTeamAndToNeighbouringQueries) {
  for (const int64_t window : {1, 64, 300}) {
    PackedBatch batch(Windowed(window), {1030, 5, 300});
    const std::vector<int32_t> positions = Holed(300, 3, 3);
    batch.sequences[2].positions = positions;
    const std::vector<float> all = batch.Run(1);
    for (const int team : {2, 8}) EXPECT_EQ(batch.Run(team), all);
    const int64_t width = batch.context_width();
    for (const auto& [first, count] : {std::pair{0, 1}, {517, 40}, {95, 3}, {700, 330}}) {
      batch.sequences[0].first_query = first;
      batch.sequences[0].queries = count;
      const std::vector<float> some = batch.Run(2);
      EXPECT_EQ(
          std::memcmp(&some[first * width], &all[first * width], count * width * sizeof(float)), 0)
          << window << " " << first;
    }
  }
}

TEST_P(AttentionWindowTest, IsAFullAttentionWhereItIsWiderThanTheSequence) {
  PackedBatch windowed(Windowed(2000), {700});
  PackedBatch full(Windowed(0), {700});
  const std::vector<float> expected = full.Run(2), context = windowed.Run(2);
  for (size_t i = 0; i < context.size(); ++i)
    EXPECT_NEAR(context[i], expected[i], GetParam() == kF32 ? 2e-6 : 8e-3);
}

}  // namespace attention_window_test
}  // namespace attendant
