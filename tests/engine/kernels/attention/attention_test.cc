#include "engine/kernels/attention/attention.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/engine/kernels/attention/attention_batch.h"
#include "tests/support/guarded_buffer.h"

namespace attendant {
namespace attention_test {

using reference::Matrix;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Widths {
  int64_t key;
  int64_t value;
};

class AttentionWidthTest : public testing::TestWithParam<std::tuple<ComputeMode, Widths>> {};

TEST_P(AttentionWidthTest, MatchesFloat64AtAnyLength) {
  const auto& [mode, widths] = GetParam();
  PackedBatch batch(ShapeOf(3, widths.key, widths.value, mode),
                    {1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 49, 64, 97, 130});
  batch.ExpectMatchesReference();
}

std::string NameOfWidths(const testing::TestParamInfo<std::tuple<ComputeMode, Widths>>& test) {
  const auto& [mode, widths] = test.param;
  return NameOf(mode) + std::to_string(widths.key) + "and" + std::to_string(widths.value);
}

INSTANTIATE_TEST_SUITE_P(Widths, AttentionWidthTest,
                         testing::Combine(testing::ValuesIn(AttentionModes()),
                                          ::testing::ValuesIn(std::vector<Widths>{
                                              Widths{1, 1}, Widths{2, 3}, Widths{3, 2},
                                              Widths{26, 26}, Widths{32, 32}, Widths{64, 64},
                                              Widths{80, 80}, Widths{64, 33}, Widths{5, 128}})),
                         NameOfWidths);

class AttentionBiasTest : public AttentionTest {};

INSTANTIATE_TEST_SUITE_P(Modes, AttentionTest, testing::ValuesIn(AttentionModes()),
                         [](const auto& test) { return NameOf(test.param); });
INSTANTIATE_TEST_SUITE_P(Modes, AttentionBiasTest, testing::ValuesIn(AttentionModes()),
                         [](const auto& test) { return NameOf(test.param); });

// Lengths around the sizes of key and query blocks.
TEST_P(AttentionTest, MatchesFloat64AcrossBlocksOfKeys) {
  for (const int64_t length : {255, 257, 511, 512, 513, 700, 1025, 1537}) {
    PackedBatch batch(ShapeOf(1, 16, 9), {length});
    batch.ExpectMatchesReference();
  }
}

TEST_P(AttentionTest, MatchesFloat64WithPeakedAndLargeScores) {
  AttentionShape shape = ShapeOf(2, 24, 24);
  shape.score_scale = 5.0f;
  PackedBatch batch(shape, {40, 600});
  batch.ExpectMatchesReference(2e-4);
}

class AttentionRoundingTest : public AttentionTest {};

INSTANTIATE_TEST_SUITE_P(Modes, AttentionRoundingTest,
                         testing::ValuesIn(ModesOfThisCpu({ComputeType::kBf16})),
                         [](const auto& test) { return NameOf(test.param); });

// The engine's error comes from the roundings alone, which the simulation has too.
TEST_P(AttentionRoundingTest, ErrorIsThatOfAPlainSimulation) {
  for (const int64_t length : {1, 30, 600}) {
    PackedBatch exact(attendant::ShapeOf(2, 64, 64, kF32), {length}),
        rounded(ShapeOf(2, 64, 64), {length});
    const Matrix expected = exact.Expected(0).context, simulated = rounded.Expected(0).context;
    const std::vector<float> computed = rounded.Run(2);
    double error = 0, simulated_error = 0;
    for (int64_t r = 0; r < expected.rows(); ++r) {
      for (int64_t c = 0; c < expected.cols(); ++c) {
        const double value = computed[r * expected.cols() + c];
        error += std::pow(value - expected(r, c), 2);
        simulated_error += std::pow(simulated(r, c) - expected(r, c), 2);
      }
    }
    EXPECT_LE(std::sqrt(error), 1.25 * std::sqrt(simulated_error)) << length;
    EXPECT_GT(error, 0) << length;
  }
}

TEST_P(AttentionTest, ProbabilitiesMatchFloat64AndChangeNothing) {
  for (const int64_t length : {1, 19, 100, 515}) {
    PackedBatch batch(ShapeOf(2, 12, 20), {length});
    const std::vector<float> probabilities = batch.CheckedProbabilities();
    for (auto row = probabilities.begin(); row != probabilities.end(); row += length) {
      EXPECT_NEAR(std::accumulate(row, row + length, 0.0), 1.0, 1e-5);
    }
  }
}

TEST_P(AttentionBiasTest, MatchesFloat64WithEveryBroadcast) {
  constexpr int64_t kHeads = 3, kLength = 37;
  const std::vector<float> values = RandomValues(kHeads * kLength * kLength, 9);
  const std::vector<AttentionBias> biases = {{values.data(), kLength * kLength, kLength, 1},
                                             {values.data(), 0, kLength, 1},
                                             {values.data(), kLength, 0, 1},
                                             {values.data(), 1, kHeads, 0},
                                             {values.data(), kLength * kLength, 1, kLength},
                                             {values.data(), 0, 0, 1}};
  for (const AttentionBias& bias : biases) {
    PackedBatch batch(ShapeOf(kHeads, 8, 8), {kLength, 5, kLength});
    batch.sequences[0].bias = batch.sequences[1].bias = &bias;
    batch.ExpectMatchesReference();
  }
}

TEST_P(AttentionBiasTest, MatchesFloat64AtPositionsOfAPaddedRow) {
  constexpr int64_t kPadded = 50;
  const std::vector<float> values = RandomValues(2 * kPadded * kPadded, 9);
  std::vector<int32_t> positions;
  for (int32_t i = 1; i < kPadded; i += i % 3 == 0 ? 2 : 1) positions.push_back(i);
  const AttentionBias bias{values.data(), kPadded * kPadded, kPadded, 1};
  PackedBatch batch(ShapeOf(2, 8, 8), {4, static_cast<int64_t>(positions.size())});
  batch.sequences[1].bias = &bias;
  batch.sequences[1].positions = positions;
  batch.ExpectMatchesReference();
}

TEST_P(AttentionBiasTest, MatchesFloat64AcrossBlocksOfKeys) {
  constexpr int64_t kLength = 1100;
  std::vector<float> values = RandomValues(kLength * kLength, 9, 3.0f);
  for (size_t i = 0; i < values.size(); i += 3) values[i] = -kInfinity;
  // Some queries see none of the first blocks of keys, and one of them sees only the very last key.
  for (int64_t s = 0; s < 20; ++s) std::fill_n(&values[s * kLength], 513 + s * 29, -kInfinity);
  std::fill_n(&values[7 * kLength], kLength - 1, -kInfinity);
  values[8 * kLength - 1] = 0.0f;
  const AttentionBias bias{values.data(), 0, kLength, 1};
  PackedBatch batch(ShapeOf(1, 16, 16), {kLength});
  batch.sequences[0].bias = &bias;
  batch.ExpectMatchesReference();
}

TEST_P(AttentionBiasTest, QueriesWithoutKeysGiveZerosAndAreCounted) {
  for (const int64_t length : {3, 40, 600}) {
    std::vector<float> values(length * length, 0.0f);
    std::fill_n(&values[length], length, -kInfinity);
    std::fill_n(&values[(length - 1) * length], length, -kInfinity);
    const AttentionBias bias{values.data(), 0, length, 1};
    PackedBatch batch(ShapeOf(2, 8, 5), {length, length});
    std::vector<float> probabilities(2 * length * length, -1.0f);
    batch.sequences[0].bias = &bias;
    batch.sequences[0].probabilities = probabilities.data();
    int64_t fully_masked = 0;
    const std::vector<float> context = batch.Run(2, &fully_masked);
    EXPECT_EQ(fully_masked, 4);
    for (int64_t c = 0; c < 10; ++c) EXPECT_EQ(context[10 + c], 0.0f);
    for (int64_t t = 0; t < length; ++t) EXPECT_EQ(probabilities[length + t], 0.0f);
    batch.ExpectMatchesReference();
  }
}

// A query still sees its keys if all have a large finite bias, which is not yet a mask.
TEST_P(AttentionBiasTest, LargeFiniteBiasesLeaveQueriesTheirKeys) {
  constexpr int64_t kHeads = 2, kWidth = 8, kLength = 40;
  for (const float masked : {-1e4f, -1e9f, -1e10f, -3e10f, -1e12f, -1e30f, -2.3e38f}) {
    std::vector<float> values(kLength * kLength, 0.0f);
    std::fill_n(&values[kLength], kLength, masked);
    std::fill_n(&values[2 * kLength], kLength - 1, masked);
    const AttentionBias bias{values.data(), 0, kLength, 1};
    PackedBatch batch(ShapeOf(kHeads, 8, kWidth), {kLength});
    std::vector<float> probabilities(kHeads * kLength * kLength);
    batch.sequences[0].bias = &bias;
    batch.sequences[0].probabilities = probabilities.data();
    int64_t fully_masked = 0;
    const std::vector<float> context = batch.Run(2, &fully_masked);
    EXPECT_EQ(fully_masked, 0) << masked;
    for (const float value : context) ASSERT_TRUE(std::isfinite(value)) << masked;
    float sum = 0.0f;
    for (int64_t key = 0; key < kLength; ++key) sum += probabilities[kLength + key];
    EXPECT_NEAR(sum, 1.0f, 1e-2f) << masked;
    EXPECT_NEAR(probabilities[3 * kLength - 1], 1.0f, 1e-6f) << masked;
  }
}

TEST_P(AttentionBiasTest, MatchesFloat64WithASecondBias) {
  constexpr int64_t kLength = 530;
  const std::vector<float> values = RandomValues(kLength * kLength, 9);
  const std::vector<float> table = RandomValues(2 * 2 * kLength, 10);
  const AttentionBias bias{values.data(), 0, kLength, 1};
  const AttentionBias distances{table.data() + kLength, 2 * kLength, -1, 1};
  for (const int64_t window : {0, 5}) {
    AttentionShape shape = ShapeOf(2, 8, 8);
    shape.window = window;
    PackedBatch batch(shape, {kLength, 17, 33});
    batch.sequences[0].bias = batch.sequences[1].bias = &bias;
    batch.distances = &distances;
    batch.ExpectMatchesReference();
  }
}

// Each sequence has its own gates, and probabilities are those before gating.
TEST_P(AttentionBiasTest, GatesScaleTheContextOfTheirHeads) {
  constexpr int64_t kHeads = 3, kWidth = 13, kLength = 40;
  const std::vector<float> gates = {0.25f, 0.0f, 1.0f};
  for (const bool asks : {false, true}) {
    PackedBatch batch(ShapeOf(kHeads, 8, kWidth), {kLength, kLength});
    const std::vector<float> free = batch.Run(2);
    std::vector<float> probabilities(kHeads * kLength * kLength), before = probabilities;
    if (asks) {
      batch.sequences[1].probabilities = before.data();
      batch.Run(2);
      batch.sequences[1].probabilities = probabilities.data();
    }
    batch.sequences[1].head_gates = gates.data();
    const std::vector<float> gated = batch.Run(2);
    for (size_t i = 0; i < free.size(); ++i) {
      const size_t row = i / (kHeads * kWidth), head = i / kWidth % kHeads;
      EXPECT_EQ(gated[i], row < kLength ? free[i] : free[i] * gates[head]);
    }
    EXPECT_EQ(probabilities, before);
  }
}

// A gate of 0 gives zeros, even if the head has values that are not finite.
TEST_P(AttentionBiasTest, AGateOfZeroLeavesNothingOfTheHead) {
  const std::vector<float> gates = {0.0f, 0.0f};
  for (const bool asks : {false, true}) {
    PackedBatch batch(ShapeOf(2, 8, 5), {7});
    std::fill(batch.qkv.begin(), batch.qkv.end(), std::nanf(""));
    std::vector<float> probabilities(2 * 7 * 7);
    if (asks) batch.sequences[0].probabilities = probabilities.data();
    batch.sequences[0].head_gates = gates.data();
    for (const float value : batch.Run(1)) EXPECT_EQ(value, 0.0f);
  }
}

// Heads with given numbers use the bias and the gate of these numbers.
TEST_P(AttentionBiasTest, BiasesAndGatesAreByTheNumbersOfHeads) {
  constexpr int64_t kLength = 20;
  const std::vector<float> values = RandomValues(4 * kLength * kLength, 9);
  const std::vector<float> gates = {1.0f, 0.5f, 1.0f, 0.25f};
  const std::vector<int64_t> numbers = {1, 3};
  const AttentionBias all{values.data(), kLength * kLength, kLength, 1};
  const AttentionBias own{values.data() + kLength * kLength, 2 * kLength * kLength, kLength, 1};
  const std::vector<float> own_gates = {0.5f, 0.25f};
  AttentionShape shape = ShapeOf(2, 8, 8);
  PackedBatch plain(shape, {kLength});
  plain.sequences[0].bias = &own;
  plain.sequences[0].head_gates = own_gates.data();
  shape.head_numbers = numbers;
  PackedBatch numbered(shape, {kLength});
  numbered.sequences[0].bias = &all;
  numbered.sequences[0].head_gates = gates.data();
  EXPECT_EQ(numbered.Run(1), plain.Run(1));
}

TEST_P(AttentionTest, InvarianceToTeamNeighboursAndPlace) {
  const AttentionShape shape = ShapeOf(2, 26, 26);
  PackedBatch batch(shape, {5, 300, 17, 1030, 64});
  const std::vector<float> all = batch.Run(1);
  for (const int team : {2, 3}) EXPECT_EQ(batch.Run(team), all);
  for (const AttentionSequence& sequence : batch.sequences) {
    PackedBatch alone(shape, {sequence.length});
    const int64_t width = static_cast<int64_t>(batch.qkv.size()) / 1416;
    std::copy_n(&batch.qkv[sequence.row_begin * width], sequence.length * width, alone.qkv.begin());
    const std::vector<float> context = alone.Run(2);
    EXPECT_EQ(std::memcmp(context.data(), &all[sequence.row_begin * batch.context_width()],
                          context.size() * sizeof(float)),
              0)
        << sequence.length;
  }
}

TEST_P(AttentionTest, NonFiniteValuesStayInTheirSequence) {
  for (const float poison : {std::nanf(""), kInfinity, -kInfinity}) {
    PackedBatch batch(ShapeOf(2, 7, 7), {9, 21, 9});
    const std::vector<float> clean = batch.Run(2);
    const int64_t width = 2 * 21;
    for (int64_t c = 0; c < width; ++c) batch.qkv[(9 + 4) * width + c] = poison;
    int64_t fully_masked = 0;
    const std::vector<float> context = batch.Run(2, &fully_masked);
    const int64_t out = batch.context_width();
    EXPECT_EQ(std::memcmp(context.data(), clean.data(), 9 * out * sizeof(float)), 0);
    EXPECT_EQ(std::memcmp(&context[30 * out], &clean[30 * out], 9 * out * sizeof(float)), 0);
    EXPECT_TRUE(std::isnan(context[(9 + 4) * out]));
    EXPECT_EQ(fully_masked, 0);
  }
}

TEST_P(AttentionTest, TouchesNothingBeyondItsOperands) {
  for (const int64_t width : {1, 3, 8, 26}) {
    for (const int64_t length : {1, 5, 33}) {
      const int64_t cols = 2 * width;
      GuardedBuffer<float> queries(length * cols), keys(length * cols), values(length * cols),
          context(length * cols), probabilities(2 * length * length), bias(length);
      const auto view = [&](const GuardedBuffer<float>& buffer) {
        return MatrixView<float>{buffer.data(), length, cols, cols};
      };
      for (float& value : values.span()) value = 1.0f;
      const AttentionBias head_bias{bias.data(), 0, 0, 1};
      const AttentionSequence sequence{0, length, &head_bias, probabilities.data()};
      const AttentionShape shape = ShapeOf(2, width, width);
      AttentionWorkspace workspace(1, shape, length);
      Attention(ThreadTeam(1), shape, {view(queries), view(keys), view(values)}, {&sequence, 1},
                view(context), workspace);
      for (const float value : context.span())
        ASSERT_NEAR(value, 1.0f, GetParam() == kF32 ? 1e-6 : 4e-3);
    }
  }
}

}  // namespace attention_test
}  // namespace attendant
