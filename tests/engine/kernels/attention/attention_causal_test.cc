// Tests of causal attention, alone and with a window, and of heads that share keys and values.
#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "engine/kernels/attention/relative_positions.h"
#include "tests/engine/kernels/attention/attention_batch.h"

namespace attendant {
namespace attention_causal_test {

class AttentionCausalTest : public AttentionTest {
 protected:
  // Six heads, each third of which shares the keys and values of one head.
  AttentionShape Causal(int64_t window = 0) const {
    AttentionShape shape = ShapeOf(6, 26, 34);
    shape.key_value_heads = 2;
    shape.causal = true;
    shape.window = window;
    return shape;
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, AttentionCausalTest, testing::ValuesIn(AttentionModes()),
                         [](const auto& test) { return NameOf(test.param); });

TEST_P(AttentionCausalTest, MatchesFloat64AtAnyLengthAndWindow) {
  for (const int64_t window : {0, 1, 7, 129, 600}) {
    PackedBatch batch(Causal(window), {1, 2, 9, 33, 97, 130, window == 0 ? 1030 : 515});
    batch.ExpectMatchesReference();
  }
}

TEST_P(AttentionCausalTest, SharedHeadsMatchFloat64WithoutMasks) {
  for (const int64_t shared : {1, 2, 3}) {
    AttentionShape shape = Causal();
    shape.causal = false;
    shape.key_value_heads = shared;
    PackedBatch batch(shape, {1, 9, 33, 130, 530});
    batch.ExpectMatchesReference();
  }
}

TEST_P(AttentionCausalTest, GoesByPositions) {
  std::vector<int32_t> positions;
  for (int32_t i = 0; i < 300; ++i) positions.push_back(7 + i + i / 5 * 2);
  for (const int64_t window : {0, 3, 65}) {
    PackedBatch batch(Causal(window), {300});
    batch.sequences[0].positions = positions;
    batch.ExpectMatchesReference();
  }
}

TEST_P(AttentionCausalTest, BiasesAndDistancesAreAdded) {
  constexpr int64_t kLength = 70;
  const std::vector<float> values = RandomValues(6 * kLength * kLength, 5);
  const AttentionBias bias = {values.data(), kLength * kLength, kLength, 1};
  std::vector<float> slopes(6 * 2 * kLength);
  const MatrixView<float> table = {slopes.data(), 6, DistanceColumns(kLength), 2 * kLength};
  FillAlibi(table);
  const AttentionBias distances = AsAttentionBias(table);
  for (const int64_t window : {0, 5}) {
    PackedBatch batch(Causal(window), {kLength});
    batch.sequences[0].bias = &bias;
    batch.ExpectMatchesReference();
    batch.distances = &distances;
    batch.ExpectMatchesReference();
  }
}

TEST_P(AttentionCausalTest, ProbabilitiesMatchFloat64AndAreThoseOfEveryHead) {
  constexpr int64_t kLength = 530;
  for (const int64_t window : {0, 3}) {
    PackedBatch batch(Causal(window), {kLength});
    const std::vector<float> probabilities = batch.CheckedProbabilities();
    for (int64_t row = 0; row < 6 * kLength; ++row) {
      const int64_t query = row % kLength;
      for (int64_t key = 0; key < kLength; ++key) {
        EXPECT_EQ(probabilities[row * kLength + key] > 0,
                  key <= query && (window == 0 || query - key <= window));
      }
    }
  }
}

// A sequence's first rows do not know how it goes on.
TEST_P(AttentionCausalTest, APrefixHasTheBitsOfTheWholeSequence) {
  constexpr int64_t kLength = 1100;
  for (const int64_t window : {0, 1, 90, 700}) {
    PackedBatch whole(Causal(window), {kLength});
    const std::vector<float> all = whole.Run(2);
    for (const int64_t length : {1, 2, 15, 17, 96, 511, 512, 513, 777}) {
      PackedBatch prefix(Causal(window), {length});
      std::copy_n(whole.qkv.begin(), prefix.qkv.size(), prefix.qkv.begin());
      const std::vector<float> some = prefix.Run(2);
      EXPECT_EQ(std::memcmp(some.data(), all.data(), some.size() * sizeof(float)), 0)
          << window << " " << length;
    }
  }
}

TEST_P(AttentionCausalTest, InvarianceToTeamAndToNeighbouringQueries) {
  for (const int64_t window : {0, 1, 300}) {
    PackedBatch batch(Causal(window), {1030, 5, 300});
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

// Blocks of keys that all queries come before, or that are out of the window, are not read.
TEST_P(AttentionCausalTest, BlocksThatNoQuerySeesAreNotRead) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t window : {0, 40}) {
    PackedBatch batch(Causal(window), {2048});
    batch.sequences[0].first_query = 1100;
    batch.sequences[0].queries = 100;
    const std::vector<float> expected = batch.Run(1);
    const int64_t width = static_cast<int64_t>(batch.qkv.size()) / 2048;
    std::fill(&batch.qkv[1200 * width], batch.qkv.data() + batch.qkv.size(), nan);
    if (window > 0) std::fill(&batch.qkv[0], &batch.qkv[1024 * width], nan);
    EXPECT_EQ(batch.Run(1), expected);
  }
}

TEST_P(AttentionCausalTest, SharedHeadsHaveTheBitsOfHeadsWithCopies) {
  const AttentionShape shape = Causal();
  AttentionShape copied = shape;
  copied.key_value_heads = 0;
  PackedBatch shares(shape, {140}), copies(copied, {140});
  float* to = copies.qkv.data();
  const AttentionInput from = shares.Input();
  for (int64_t r = 0; r < shares.rows(); ++r) {
    to = std::copy_n(from.queries.row(r), 6 * 26, to);
    for (int64_t h = 0; h < 6; ++h) to = std::copy_n(from.keys.row(r) + h / 3 * 26, 26, to);
    for (int64_t h = 0; h < 6; ++h) to = std::copy_n(from.values.row(r) + h / 3 * 34, 34, to);
  }
  EXPECT_EQ(shares.Run(2), copies.Run(2));
}

}  // namespace attention_causal_test
}  // namespace attendant
