#include "engine/layers/extras/token_convolution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/layers/encoder.h"
#include "tests/reference/token_convolution.h"
#include "tests/support/engine_calls.h"
#include "tests/support/memory_weights.h"

namespace attendant::test_support {
namespace token_convolution_test {

constexpr int64_t kWidth = 24;

class TokenConvolutionTest : public ::testing::Test {
 protected:
  // Returns the rows of all `sequences` after a convolution with random weights.
  std::vector<float> Convolve(const std::vector<Sequence>& sequences,
                              const std::vector<int32_t>& positions, const ComputeMode& mode = {}) {
    MemoryWeights weights = RandomWeights(model_, 3);
    const auto no_progress = [](int64_t, int64_t) {};
    WeightLoader loader(weights, 0, no_progress, mode);
    const TokenConvolution convolution("layer.0.", model_.layer, loader);
    EXPECT_TRUE(loader.status().ok()) << loader.status();
    Workspace workspace(model_, 2100, 2, mode);
    const PositionTables tables(model_, 2100);
    BatchRun batch_run(model_, workspace, tables);
    workspace.Reserve(loader.product_uses());
    const std::vector<int32_t> bounds = CumulativeLengths(sequences, kWidth);
    const PackedBatch batch = {.cu_seqlens = bounds, .bias = {}, .positions = positions};
    RunObserver nobody;
    EXPECT_TRUE(batch_run.Begin(batch, 0, nobody).ok());
    const LayerRun run = batch_run.Layer(0, /*is_last=*/true);
    const MatrixView<float> x = run.Kept(workspace.activations.hidden());
    float* row = x.data;
    for (const Sequence& sequence : sequences)
      row = std::copy(sequence.begin(), sequence.end(), row);
    BlockRows rows = {x, x};
    convolution.Begin(rows, run);
    const MatrixView<float> y = run.Kept(workspace.activations.convolved());
    return {y.data, y.row(run.tokens)};
  }

  // Returns the rows of one sequence, from the definition.
  std::vector<double> Exact(const Sequence& sequence, const std::vector<int32_t>& places) {
    MemoryWeights weights = RandomWeights(model_, 3);
    const auto read = [&](const char* name) {
      const std::vector<float>& values = weights.tensors().at(name);
      return std::vector<double>(values.begin(), values.end());
    };
    const ConvolutionShape& shape = model_.layer.extras.convolution;
    std::vector<double> y =
        reference::Convolve({kWidth, shape.groups, shape.taps, read("layer.0.convolution.weight"),
                             read("layer.0.convolution.bias")},
                            {sequence.begin(), sequence.end()}, places);
    for (double& element : y) element = std::tanh(element);
    return y;
  }

  ModelDescription model_ = SmallModel(1, 2, kWidth / 2);
};

// Sequences after padding, with holes, of one token and without tokens.
TEST_F(TokenConvolutionTest, LooksAtPlacesOfItsOwnSequence) {
  const std::vector<Sequence> sequences = RandomSequences({6, 0, 1, 5, 4}, kWidth, 5);
  const std::vector<std::vector<int32_t>> places = {
      {0, 1, 2, 3, 4, 5}, {}, {7}, {3, 4, 6, 9, 10}, {2, 3, 4, 5}};
  std::vector<int32_t> positions;
  for (const auto& one : places) positions.insert(positions.end(), one.begin(), one.end());
  for (const int64_t taps : {1, 3, 5, 9}) {
    for (const int64_t groups : {1, 2, 24}) {
      model_.layer.extras.convolution = {.taps = taps, .groups = groups};
      const std::vector<float> all = Convolve(sequences, positions);
      const float* at = all.data();
      for (size_t i = 0; i < sequences.size(); ++i) {
        for (const double element : Exact(sequences[i], places[i])) {
          EXPECT_NEAR(*at++, element, 2e-6) << taps << " " << groups << " sequence " << i;
        }
      }
    }
  }
}

// More rows than are gathered at once.
TEST_F(TokenConvolutionTest, CrossesTheBlocksOfLongSequences) {
  model_.layer.extras.convolution = {.taps = 3};
  const std::vector<Sequence> sequences = RandomSequences({1000, 1053}, kWidth, 5);
  const std::vector<float> all = Convolve(sequences, {});
  std::vector<int32_t> places;
  for (int32_t i = 0; i < 1053; ++i) places.push_back(i);
  const std::vector<double> exact = Exact(sequences[1], places);
  for (size_t i = 0; i < exact.size(); ++i) {
    ASSERT_NEAR(all[1000 * kWidth + i], exact[i], 2e-6) << i;
  }
}

TEST_F(TokenConvolutionTest, RoundsAsOtherLinearLayersDo) {
  model_.layer.extras.convolution = {.taps = 3, .groups = 2};
  const std::vector<Sequence> sequences = RandomSequences({20}, kWidth, 5);
  std::vector<int32_t> places;
  for (int32_t i = 0; i < 20; ++i) places.push_back(i);
  const std::vector<double> exact = Exact(sequences[0], places);
  for (const ComputeType type : {ComputeType::kBf16, ComputeType::kInt8}) {
    const std::vector<float> rounded = Convolve(sequences, {}, BestMode(type));
    double largest = 0;
    for (size_t i = 0; i < exact.size(); ++i) {
      largest = std::max(largest, std::abs(rounded[i] - exact[i]));
    }
    EXPECT_LT(largest, 0.1) << Name(type);
    EXPECT_GT(largest, 1e-4) << Name(type);
  }
  const std::vector<float> split = Convolve(sequences, {}, BestMode(ComputeType::kBf16x3));
  for (size_t i = 0; i < exact.size(); ++i) EXPECT_NEAR(split[i], exact[i], 1e-4) << i;
}

TEST_F(TokenConvolutionTest, ANanStaysWhereItIsSeen) {
  model_.layer.extras.convolution = {.taps = 3};
  std::vector<Sequence> sequences = RandomSequences({4, 4}, kWidth, 5);
  const std::vector<float> clean = Convolve(sequences, {});
  sequences[0][3 * kWidth] = std::nanf("");
  const std::vector<float> spoilt = Convolve(sequences, {});
  for (int64_t row = 0; row < 8; ++row) {
    const Sequence before(clean.begin() + row * kWidth, clean.begin() + (row + 1) * kWidth);
    const Sequence after(spoilt.begin() + row * kWidth, spoilt.begin() + (row + 1) * kWidth);
    EXPECT_EQ(BitEqual(before, after), row != 2 && row != 3) << row;
  }
}

// A span that ends before this layer or begins after it has no convolution, and neither has the
// answer of Attend.
TEST_F(TokenConvolutionTest, BelongsToItsLayer) {
  model_ = SmallModel(2, 2, kWidth / 2);
  ModelDescription with = model_;
  with.layer.extras.convolution = {.taps = 3};
  with.layer_shapes = {with.layer, model_.layer};
  MemoryWeights weights = RandomWeights(with, 3);
  EncoderRun run(LoadEncoder(with, weights), 32, 1), plain(LoadEncoder(model_, weights), 32, 1);
  const std::vector<Sequence> sequences = RandomSequences({9}, kWidth, 5);
  EXPECT_FALSE(BitEqual(Encode(run, sequences, 0, 1)[0], Encode(plain, sequences, 0, 1)[0]));
  EXPECT_TRUE(BitEqual(Encode(run, sequences, 1, 1)[0], Encode(plain, sequences, 1, 1)[0]));
  RunObserver nobody;
  const std::vector<int32_t> bounds = {0, 9};
  const auto block = [&](EncoderRun& one) {
    FillInput(sequences, one);
    const auto rows =
        *one.Attend(0, AttendStage::kBlock, {.cu_seqlens = bounds, .bias = {}}, nobody);
    return Sequence(rows.data, rows.row(9));
  };
  EXPECT_TRUE(BitEqual(block(run), block(plain)));
}

}  // namespace token_convolution_test
}  // namespace attendant::test_support
