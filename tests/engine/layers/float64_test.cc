// Tests of the engine against float64 formulas.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <tuple>

#include "absl/strings/str_replace.h"
#include "engine/checkpoint/checkpoint.h"
#include "tests/reference/encoder.h"
#include "tests/support/engine_calls.h"
#include "tests/support/memory_weights.h"

namespace attendant::test_support {
namespace float64_test {

double LargestError(const std::vector<Sequence>& actual,
                    const std::vector<std::vector<double>>& expected) {
  double largest = 0;
  EXPECT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_EQ(actual[i].size(), expected[i].size());
    for (size_t j = 0; j < actual[i].size(); ++j) {
      const double error = std::abs(actual[i][j] - expected[i][j]);
      if (!(error <= largest)) largest = error;
    }
  }
  return largest;
}

std::vector<std::vector<double>> InFloat64(const std::vector<Sequence>& sequences) {
  std::vector<std::vector<double>> result;
  for (const Sequence& sequence : sequences) result.emplace_back(sequence.begin(), sequence.end());
  return result;
}

std::vector<Sequence> InFloat32(const std::vector<std::vector<double>>& sequences) {
  std::vector<Sequence> result;
  for (const auto& sequence : sequences) result.emplace_back(sequence.begin(), sequence.end());
  return result;
}

// Returns the root of the mean squared difference.
double Deviation(const std::vector<std::vector<double>>& actual,
                 const std::vector<std::vector<double>>& expected) {
  double sum = 0, count = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    for (size_t j = 0; j < actual[i].size(); ++j, ++count) {
      sum += std::pow(actual[i][j] - expected[i][j], 2);
    }
  }
  return std::sqrt(sum / count);
}

// The errors of all layers on sequences of these lengths.
double EncodeError(const ModelDescription& model, WeightSource& weights,
                   const std::vector<int64_t>& lengths, const ComputeMode& mode = {}) {
  const std::vector<Sequence> inputs = RandomSequences(lengths, model.layer.hidden_size, 99);
  const auto encoder = LoadEncoder(model, weights, mode);
  EncoderRun run(encoder, 1024, 2);
  std::vector<std::vector<double>> exact;
  for (const Sequence& input : inputs) exact.emplace_back(input.begin(), input.end());
  exact = reference::Encoder(model, weights).Encode(std::move(exact));
  return LargestError(Encode(run, *encoder, inputs), exact);
}

TEST(Float64Test, TwelveLayersOfBertBase) {
  absl::StatusOr<Checkpoint> checkpoint = OpenCheckpoint("synthetic:bert-base", {});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  checkpoint->description.embeddings.reset();
  EXPECT_LE(EncodeError(checkpoint->description, *checkpoint->weights, {17, 128}), 5e-5);
}

TEST(Float64Test, TwelveLayersOfBertBaseInBf16x3) {
  absl::StatusOr<Checkpoint> checkpoint = OpenCheckpoint("synthetic:bert-base", {});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  checkpoint->description.embeddings.reset();
  EXPECT_LE(EncodeError(checkpoint->description, *checkpoint->weights, {9, 23},
                        BestMode(ComputeType::kBf16x3)),
            6e-5);
}

// The engine's error comes from the roundings alone, which a plain simulation has too.
void ExpectErrorOfASimulation(const ModelDescription& model, WeightSource& weights,
                              const std::vector<int64_t>& lengths, const ComputeMode& mode) {
  const std::vector<Sequence> inputs = RandomSequences(lengths, model.layer.hidden_size, 99);
  const std::vector<std::vector<double>> x = InFloat64(inputs);
  const auto exact = reference::Encoder(model, weights).Encode(x);
  const auto simulated = reference::Encoder(model, weights, mode.type).Encode(x);
  const auto encoder = LoadEncoder(model, weights, mode);
  EncoderRun run(encoder, 1024, 2);
  const std::vector<Sequence> computed = Encode(run, *encoder, inputs);
  const double error = Deviation(InFloat64(computed), exact);
  EXPECT_LE(error, 1.25 * Deviation(simulated, exact));
  EXPECT_LE(LargestError(computed, exact), 1.25 * LargestError(InFloat32(simulated), exact));
  EXPECT_GT(error, mode.type == ComputeType::kBf16x3 ? 1e-6 : 1e-4);  // it does round
}

class RoundingTest : public ::testing::TestWithParam<ComputeMode> {};

TEST_P(RoundingTest, ErrorIsThatOfAPlainSimulation) {
  ModelDescription model = SmallModel(3, 4, 64);
  model.layer.feed_forward.width = 1024;
  MemoryWeights weights = RandomWeights(model, 7);
  ExpectErrorOfASimulation(model, weights, {1, 40, 16, 70}, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Modes, RoundingTest,
                         ::testing::ValuesIn(ModesOfThisCpu(
                             {ComputeType::kBf16x3, ComputeType::kBf16, ComputeType::kInt8})),
                         [](const auto& tested) { return NameOf(tested.param); });

// Computes all layers at the widths of checkpoints that are in use.
class CheckpointRoundingTest
    : public ::testing::TestWithParam<std::tuple<std::string, ComputeType>> {};

TEST_P(CheckpointRoundingTest, ErrorIsThatOfAPlainSimulation) {
  const auto& [name, type] = GetParam();
  absl::StatusOr<Checkpoint> checkpoint = OpenCheckpoint("synthetic:" + name, {});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  checkpoint->description.embeddings.reset();
  ExpectErrorOfASimulation(checkpoint->description, *checkpoint->weights, {5, 19}, BestMode(type));
}

INSTANTIATE_TEST_SUITE_P(Models, CheckpointRoundingTest,
                         ::testing::Combine(::testing::Values("bert-base", "minilm-l6"),
                                            ::testing::Values(ComputeType::kBf16,
                                                              ComputeType::kInt8)),
                         [](const auto& tested) {
                           return absl::StrReplaceAll(std::get<0>(tested.param), {{"-", "_"}}) +
                                  "_" + Name(std::get<1>(tested.param));
                         });

struct Case {
  std::string name;
  ModelDescription model;
  Biases biases = Biases::kAll;
  double bound = 4e-6;  // of the largest error
};

void PrintTo(const Case& tested, std::ostream* stream) { *stream << tested.name; }

// Returns the default case, changed.
template <typename Change>
Case Changed(std::string name, Change change) {
  Case changed = {.name = std::move(name), .model = SmallModel(2, 2, 16)};
  change(changed);
  return changed;
}

RelativePositionShape Rotary(int64_t width) {
  RelativePositionShape shape;
  shape.kind = RelativePositions::kRotary;
  shape.rotary.frequencies = RotaryFrequencies(width, 1000);
  return shape;
}

RelativePositionShape Disentangled(int64_t buckets, int64_t max_distance) {
  RelativePositionShape shape = {RelativePositions::kDisentangled, buckets, max_distance};
  shape.scores_queries = true;
  shape.scores_keys = true;
  return shape;
}

std::vector<Case> SmallCases() {
  return {
      Changed("HeadWidth26", [](Case& c) { c.model = SmallModel(2, 12, 26); }),
      Changed("ThreeHeads", [](Case& c) { c.model = SmallModel(2, 3, 20); }),
      Changed("OneWideHead", [](Case& c) { c.model = SmallModel(2, 1, 96); }),
      Changed("PreNorm", [](Case& c) { c.model.layer.norms.placement = NormPlacement::kPre; }),
      Changed("PreNormWithExitNorm",
              [](Case& c) {
                c.model.layer.norms.placement = NormPlacement::kPre;
                c.model.has_exit_norm = true;
              }),
      Changed("SandwichNormsWithExitNorm",
              [](Case& c) {
                c.model.layer.norms.placement = NormPlacement::kSandwich;
                c.model.has_exit_norm = true;
              }),
      Changed("RmsSandwichNormsWithGateAndBranchScale",
              [](Case& c) {
                c.model.layer.norms.placement = NormPlacement::kSandwich;
                c.model.layer.norms.kind = NormKind::kRms;
                c.model.layer.feed_forward.has_gate = true;
                c.model.layer.extras.has_branch_scale = true;
              }),
      Changed("SandwichWithoutFirstAttentionNorm",
              [](Case& c) {
                c.model.layer.norms.placement = NormPlacement::kSandwich;
                c.model.SplitShapes();
                c.model.layer_shapes[0].norms.has_attention_norm = false;
              }),
      Changed("SandwichWithoutOutputProjection",
              [](Case& c) {
                c.model.layer.norms.placement = NormPlacement::kSandwich;
                c.model.layer.attention.has_output_projection = false;
              }),
      Changed("Relu", [](Case& c) { c.model.layer.feed_forward.activation = Activation::kRelu; }),
      Changed("GeluTanh",
              [](Case& c) { c.model.layer.feed_forward.activation = Activation::kGeluTanh; }),
      Changed("Silu", [](Case& c) { c.model.layer.feed_forward.activation = Activation::kSilu; }),
      Changed("NoBiases", [](Case& c) { c.biases = Biases::kNone; }),
      Changed("NoFeedForward", [](Case& c) { c.model.layer.feed_forward.width = 0; }),
      Changed("OddFeedForward", [](Case& c) { c.model.layer.feed_forward.width = 53; }),
      Changed("ContextWiderThanHidden", [](Case& c) { c.model.layer.attention.value_width = 40; }),
      Changed("KeysNarrowerThanValues", [](Case& c) { c.model.layer.attention.key_width = 7; }),
      Changed("AttentionAloneTwice",
              [](Case& c) {
                c.model.layer.norms.placement = NormPlacement::kNone;
                c.model.layer.feed_forward.width = 0;
              }),
      Changed("ContextAloneTwice",
              [](Case& c) {
                c.model.layer.norms.placement = NormPlacement::kNone;
                c.model.layer.feed_forward.width = 0;
                c.model.layer.attention.has_output_projection = false;
              }),
      Changed("PostNormWithoutOutputProjection",
              [](Case& c) { c.model.layer.attention.has_output_projection = false; }),
      Changed("RmsNorm", [](Case& c) { c.model.layer.norms.kind = NormKind::kRms; }),
      Changed("RmsPreNormWithExitNorm",
              [](Case& c) {
                c.model.layer.norms.kind = NormKind::kRms;
                c.model.layer.norms.placement = NormPlacement::kPre;
                c.model.has_exit_norm = true;
              }),
      Changed("RmsPlusOneInAPreNormLayer",
              [](Case& c) {
                c.model.layer.norms.kind = NormKind::kRmsPlusOne;
                c.model.layer.norms.placement = NormPlacement::kPre;
                c.model.has_exit_norm = true;
                c.bound = 1.2e-5;  // gains of about 2 make results as much larger
              }),
      Changed("Gate", [](Case& c) { c.model.layer.feed_forward.has_gate = true; }),
      Changed("OddSiluGateWithoutBiases",
              [](Case& c) {
                c.model.layer.feed_forward.has_gate = true;
                c.model.layer.feed_forward.activation = Activation::kSilu;
                c.model.layer.feed_forward.width = 53;
                c.biases = Biases::kNone;
              }),
      Changed("MixtureInTheSecondOfThreeLayers",
              [](Case& c) {
                c.model = SmallModel(3, 2, 16);
                c.model.layer.feed_forward.mixture = {8, 2};
                c.model.SplitShapes();
                for (const int layer : {0, 2}) {
                  c.model.layer_shapes[layer].feed_forward.mixture = {};
                }
              }),
      Changed("PreNormMixtureOfOneOfThreeWithGates",
              [](Case& c) {
                c.model.layer.norms.placement = NormPlacement::kPre;
                c.model.layer.feed_forward.has_gate = true;
                c.model.layer.feed_forward.width = 53;
                c.model.layer.feed_forward.mixture = {3, 1};
              }),
      Changed("MixtureOfAllExpertsWithoutBiases",
              [](Case& c) {
                c.model.layer.feed_forward.mixture = {4, 4};
                c.model.layer.norms.placement = NormPlacement::kSandwich;
                c.biases = Biases::kNone;
              }),
      Changed("BranchScale", [](Case& c) { c.model.layer.extras.has_branch_scale = true; }),
      Changed("PreNormWithBranchScaleAndGate",
              [](Case& c) {
                c.model.layer.norms.placement = NormPlacement::kPre;
                c.model.layer.extras.has_branch_scale = true;
                c.model.layer.feed_forward.has_gate = true;
              }),
      Changed("Buckets",
              [](Case& c) {
                c.model.layer.relative_positions = {RelativePositions::kBuckets, 32, 128};
              }),
      Changed("FewBucketsHeadWidth26",
              [](Case& c) {
                c.model = SmallModel(2, 3, 26);
                c.model.layer.relative_positions = {RelativePositions::kBuckets, 8, 10};
              }),
      Changed("AlibiThreeHeads",
              [](Case& c) {
                c.model = SmallModel(2, 3, 16);
                c.model.layer.relative_positions.kind = RelativePositions::kAlibi;
              }),
      Changed("Disentangled",
              [](Case& c) { c.model.layer.relative_positions = Disentangled(8, 30); }),
      Changed("DisentangledSharedHeadWidth26",
              [](Case& c) {
                c.model = SmallModel(2, 3, 26);
                c.model.layer.relative_positions = Disentangled(16, 100);
                c.model.layer.relative_positions.shares_projections = true;
                c.model.layer.relative_positions.has_norm = true;
              }),
      Changed("DisentangledQueriesAloneWithoutBuckets",
              [](Case& c) {
                c.model.layer.relative_positions = Disentangled(0, 11);
                c.model.layer.relative_positions.scores_keys = false;
              }),
      Changed("DisentangledKeysAloneInAWindow",
              [](Case& c) {
                c.model.layer.relative_positions = Disentangled(4, 20);
                c.model.layer.relative_positions.scores_queries = false;
                c.model.layer.attention.window = 9;
              }),
      Changed("Rotary", [](Case& c) { c.model.layer.relative_positions = Rotary(16); }),
      Changed("RotaryHeadWidth26Interleaved",
              [](Case& c) {
                c.model = SmallModel(2, 3, 26);
                c.model.layer.relative_positions = Rotary(26);
                c.model.layer.relative_positions.rotary.pairs = RotaryPairs::kInterleaved;
              }),
      Changed("RotaryWithAnAmplitude",
              [](Case& c) {
                c.model.layer.relative_positions = Rotary(16);
                c.model.layer.relative_positions.rotary.amplitude = 1.3f;
              }),
      Changed(
          "RotaryOfTwoPartsOfAHead",
          [](Case& c) {
            c.model.layer.relative_positions = Rotary(6);
            c.model.SplitShapes();
            c.model.layer_shapes[0].relative_positions.rotary = {RotaryFrequencies(6, 100)};
            c.model.layer_shapes[1].relative_positions.rotary = {RotaryFrequencies(10, 7), 0.9f};
          }),
      Changed("FirstLayerWithoutAttentionNorm",
              [](Case& c) {
                c.model.layer.norms.placement = NormPlacement::kPre;
                c.model.SplitShapes();
                c.model.layer_shapes[0].norms.has_attention_norm = false;
              }),
      Changed("QueryKeyNorms",
              [](Case& c) {
                c.model = SmallModel(2, 3, 26);
                c.model.layer.attention.query_key_norms = QueryKeyNorms::kAllHeads;
                c.model.layer.relative_positions = Rotary(26);
              }),
      Changed("CausalInGroupsWithRotaryPositionsAndNormsOfEachHead",
              [](Case& c) {
                c.model = SmallModel(2, 6, 26);
                c.model.layer.attention.key_value_heads = 2;
                c.model.layer.attention.value_width = 10;
                c.model.layer.attention.causal = true;
                c.model.layer.attention.query_key_norms = QueryKeyNorms::kEachHead;
                c.model.layer.norms.kind = NormKind::kRms;
                c.model.layer.norms.placement = NormPlacement::kPre;
                c.model.layer.relative_positions = Rotary(26);
              }),
      Changed("CausalInAWindowWithBiasesOfDistances",
              [](Case& c) {
                c.model.layer.attention.causal = true;
                c.model.layer.attention.window = 4;
                c.model.layer.relative_positions = {RelativePositions::kAlibi};
              }),
      Changed("GroupsWithNormsOfAllHeads",
              [](Case& c) {
                c.model = SmallModel(2, 4, 26);
                c.model.layer.attention.key_value_heads = 1;
                c.model.layer.attention.query_key_norms = QueryKeyNorms::kAllHeads;
              }),
      Changed("SecondAttentionNorm",
              [](Case& c) { c.model.layer.extras.has_second_attention_norm = true; }),
      Changed("Window", [](Case& c) { c.model.layer.attention.window = 3; }),
      Changed("AdditiveScores",
              [](Case& c) {
                c.model = SmallModel(2, 3, 26);
                c.model.layer.attention.kind = AttentionKind::kAdditive;
              }),
      Changed("AdditiveScoresInAWindowWithBuckets",
              [](Case& c) {
                c.model.layer.attention.kind = AttentionKind::kAdditive;
                c.model.layer.attention.window = 5;
                c.model.layer.relative_positions = {RelativePositions::kBuckets, 8, 10};
              }),
      Changed("Linformer",
              [](Case& c) {
                c.model = SmallModel(2, 3, 26);
                c.model.layer.attention.value_width = 5;
                c.model.layer.attention.kind = AttentionKind::kLinformer;
                c.model.layer.attention.linformer.keys = 9;
                c.model.layer.attention.linformer.positions = 40;
              }),
      Changed("LinearAttention",
              [](Case& c) {
                c.model = SmallModel(2, 3, 26);
                c.model.layer.attention.value_width = 5;
                c.model.layer.attention.kind = AttentionKind::kLinear;
                c.model.layer.attention.score_scale = 0.01f;
              }),
      Changed("CausalLinearAttentionWithRotaryPositions",
              [](Case& c) {
                c.model.layer.attention.kind = AttentionKind::kCausalLinear;
                c.model.layer.relative_positions = Rotary(16);
                c.model.layer.attention.score_scale = 0.01f;
              }),
      Changed("Convolution", [](Case& c) { c.model.layer.extras.convolution.taps = 3; }),
      Changed("OneConvolutionOfManyPlacesInGroups",
              [](Case& c) {
                c.model.layer.extras.convolution = {
                    .taps = 9, .groups = 4, .activation = Activation::kGelu};
                c.model.SplitShapes();
                c.model.layer_shapes[1].extras.convolution = {};
              }),
      Changed("OneNormOfAnotherEpsilon", [](Case& c) { c.model.layer.norms.last_epsilon = 0.5f; }),
      Changed("Bottleneck",
              [](Case& c) {
                c.model.layer.extras.bottleneck.width = 24;
                c.model.layer.attention.key_width = c.model.layer.attention.value_width = 12;
                c.model.layer.extras.bottleneck.values_from_outside = true;
                c.model.layer.feed_forward.blocks = 3;
              }),
      Changed("WideBottleneckForAll",
              [](Case& c) {
                c.model.layer.extras.bottleneck.width = 40;
                c.model.layer.attention.key_width = c.model.layer.attention.value_width = 20;
                c.model.layer.attention.window = 4;
              }),
      Changed("WindowWithGlobalToken",
              [](Case& c) {
                c.model.layer.attention.window = 2;
                c.model.layer.attention.pattern.first_global = 1;
              }),
      Changed("BlocksInOneLayer",
              [](Case& c) {
                c.model.layer.attention.window = 1;
                c.model.layer.attention.pattern = {.block = 4,
                                                   .first_global = 1,
                                                   .last_global = 1,
                                                   .first_repeats = 2,
                                                   .full_up_to = 20};
                c.model.SplitShapes();
                c.model.layer_shapes[1].attention.window = 0;
                c.model.layer_shapes[1].attention.pattern = {};
              }),
      Changed("ListedBlocks",
              [](Case& c) {
                c.model.layer.attention.window = 1;
                c.model.layer.attention.pattern = {
                    .block = 4,
                    .first_global = 1,
                    .listed = BlockLists({{2, 5}, {3, 7}, {7, 1}, {9, 4}}, {5})};
              }),
      Changed("WindowInOneLayer",
              [](Case& c) {
                c.model.layer.attention.window = 1;
                c.model.SplitShapes();
                c.model.layer_shapes[1].attention.window = 0;
                c.model.layer_shapes[1].attention.pattern = {};
              }),
      Changed("LayersOfOtherWidths",
              [](Case& c) {
                c.model.layer.attention.key_width = 24;
                c.model.layer.feed_forward.has_gate = true;
                c.model.SplitShapes();
                c.model.layer_shapes[1].attention.key_width = 7;
                c.model.layer_shapes[1].attention.score_scale = 0.3f;
                c.model.layer_shapes[1].feed_forward = {.width = 21};
              }),
      Changed("SharedLayers",
              [](Case& c) {
                c.model.layers = 5;
                c.model.layer_map = {0, 0, 1, 1, 0};
              }),
      Changed("PreNormWithoutOutputProjection",
              [](Case& c) {
                c.model.layer.norms.placement = NormPlacement::kPre;
                c.model.layer.attention.has_output_projection = false;
              }),
  };
}

class SmallFloat64Test : public ::testing::TestWithParam<Case> {};

TEST_P(SmallFloat64Test, Matches) {
  const Case& tested = GetParam();
  MemoryWeights weights = RandomWeights(tested.model, 7, tested.biases);
  EXPECT_LE(EncodeError(tested.model, weights, {1, 0, 40, 3, 16, 33}), tested.bound);
}

INSTANTIATE_TEST_SUITE_P(Shapes, SmallFloat64Test, ::testing::ValuesIn(SmallCases()),
                         [](const auto& tested) { return tested.param.name; });

class HoledFloat64Test : public ::testing::TestWithParam<RelativePositions> {};

TEST_P(HoledFloat64Test, RelativePositionsAndWindowsAreThoseOfThePaddedRow) {
  ModelDescription model = SmallModel(2, 2, 16);
  model.layer.attention.window = 4;
  model.layer.relative_positions = Rotary(16);
  model.layer.relative_positions.buckets = 8;
  model.layer.relative_positions.max_distance = 10;
  model.layer.relative_positions.scores_queries = true;
  model.layer.relative_positions.scores_keys = true;
  model.layer.relative_positions.kind = GetParam();
  MemoryWeights weights = RandomWeights(model, 7);
  EncoderRun run(LoadEncoder(model, weights), 64, 2);
  const std::vector<Sequence> inputs = RandomSequences({4, 5}, 32, 3);
  const std::vector<std::vector<int32_t>> positions = {{0, 1, 5, 63}, {7, 8, 9, 20, 21}};
  FillInput(inputs, run);
  const std::vector<int32_t> bounds = {0, 4, 9};
  const std::vector<int32_t> flat = {0, 1, 5, 63, 7, 8, 9, 20, 21};
  RunObserver nobody;
  const auto result =
      run.Encode(0, 2, {.cu_seqlens = bounds, .bias = {}, .positions = flat}, nobody);
  ASSERT_TRUE(result.ok()) << result.status();
  std::vector<std::vector<double>> exact;
  for (const Sequence& input : inputs) exact.emplace_back(input.begin(), input.end());
  exact = reference::Encoder(model, weights).Encode(std::move(exact), positions);
  const float* rows = result->row(0);
  EXPECT_LE(LargestError({{rows, rows + 4 * 32}, {rows + 4 * 32, rows + 9 * 32}}, exact), 4e-6);
}

INSTANTIATE_TEST_SUITE_P(Kinds, HoledFloat64Test,
                         ::testing::Values(RelativePositions::kBuckets, RelativePositions::kAlibi,
                                           RelativePositions::kRotary, RelativePositions::kNone,
                                           RelativePositions::kDisentangled),
                         [](const auto& tested) { return Name(tested.param); });

TEST(Float64Test, MoreTokensThanTheFeedForwardTakesAtOnce) {
  ModelDescription model = SmallModel(1, 2, 8);
  model.layer.feed_forward.has_gate = true;
  MemoryWeights weights = RandomWeights(model, 7);
  const auto encoder = LoadEncoder(model, weights);
  EncoderRun run(encoder, 2100, 2);
  const std::vector<Sequence> inputs = RandomSequences({700, 700, 653}, 16, 3);
  std::vector<std::vector<double>> exact;
  for (const Sequence& input : inputs) exact.emplace_back(input.begin(), input.end());
  exact = reference::Encoder(model, weights).Encode(std::move(exact));
  EXPECT_LE(LargestError(Encode(run, *encoder, inputs), exact), 4e-6);
}

// Returns the embeddings of one sequence of token ids.
double EmbedError(const ModelDescription& model, const reference::TokenSequence& ids) {
  MemoryWeights weights = RandomWeights(model, 11);
  EncoderRun run(LoadEncoder(model, weights), 64, 2);
  // The sequence lies between other rows, which must stay unchanged.
  const int64_t width = model.layer.hidden_size;
  const int64_t count = static_cast<int64_t>(ids.words.size());
  std::fill_n(run.input().data, 64 * width, 7.0f);
  run.Embed({.words = ids.words, .positions = ids.positions, .token_types = ids.token_types}, 5);
  for (int64_t r : {int64_t{4}, 5 + count, int64_t{63}}) {
    EXPECT_TRUE(std::all_of(run.input().row(r), run.input().row(r) + width,
                            [](float element) { return element == 7.0f; }))
        << "row " << r;
  }
  const MatrixView<float> rows = run.input().Rows(5, count);
  const std::vector<Sequence> embedded = {Sequence(rows.data, rows.data + count * width)};
  return LargestError(embedded, {reference::Encoder(model, weights).Embed(ids)});
}

class EmbeddingsTest : public ::testing::Test {
 protected:
  EmbeddingsTest() {
    model_.embeddings = {
        .width = 24, .vocabulary = 50, .positions = 40, .token_types = 2, .norm_epsilon = 1e-12f};
    for (int32_t i = 0; i < 35; ++i) {
      ids_.words.push_back((i * 17 + 3) % 50);
      ids_.positions.push_back(39 - i);
      ids_.token_types.push_back(i % 2);
    }
  }

  int64_t LoadedTables() {
    MemoryWeights weights = RandomWeights(model_, 11);
    return LoadEncoder(model_, weights)->weight_bytes();
  }

  ModelDescription model_ = SmallModel(1, 2, 12);
  reference::TokenSequence ids_;
};

TEST_F(EmbeddingsTest, SumTablesAndNormalize) { EXPECT_LE(EmbedError(model_, ids_), 2e-6); }

TEST_F(EmbeddingsTest, AreProjectedToTheHiddenSize) {
  model_.embeddings->width = 10;
  EXPECT_LE(EmbedError(model_, ids_), 2e-6);
  model_.embeddings->width = 33;
  EXPECT_LE(EmbedError(model_, ids_), 2e-6);
}

TEST_F(EmbeddingsTest, AreProjectedToTheSameWidth) {
  model_.embeddings->always_projected = true;
  EXPECT_LE(EmbedError(model_, ids_), 2e-6);
}

TEST_F(EmbeddingsTest, AreNotNormalizedWithoutANorm) {
  model_.embeddings->has_norm = false;
  EXPECT_LE(EmbedError(model_, ids_), 2e-6);
  model_.embeddings->width = 10;
  EXPECT_LE(EmbedError(model_, ids_), 2e-6);
}

TEST_F(EmbeddingsTest, TakeTokenTypeZeroByDefault) {
  ids_.token_types.clear();
  EXPECT_LE(EmbedError(model_, ids_), 2e-6);
}

TEST_F(EmbeddingsTest, IgnorePositionsAndTypesWithoutTables) {
  model_.embeddings->positions = 0;
  model_.embeddings->token_types = 0;
  EXPECT_LE(EmbedError(model_, ids_), 2e-6);
}

TEST_F(EmbeddingsTest, AreProjectedBeforeTheNorm) {
  model_.embeddings->width = 10;
  model_.embeddings->norm_is_last = true;
  EXPECT_LE(EmbedError(model_, ids_), 2e-6);
}

TEST_F(EmbeddingsTest, ScaleWords) {
  model_.embeddings->word_scale = 3;
  EXPECT_LE(EmbedError(model_, ids_), 2e-6);
}

TEST_F(EmbeddingsTest, KeepTablesInTheTypeOfTheirFile) {
  model_.embeddings->word_scale = 3;
  const int64_t whole = LoadedTables();
  for (const DataType type : {DataType::kBFloat16, DataType::kFloat16}) {
    model_.embeddings->table_type = type;
    EXPECT_LE(EmbedError(model_, ids_), 2e-6) << Name(type);
    EXPECT_EQ(LoadedTables(), whole - (50 + 40 + 2) * 24 * 2) << Name(type);
  }
  // Wider than the columns that are converted at once.
  model_ = SmallModel(1, 2, 150);
  model_.embeddings = {.width = 300, .vocabulary = 50, .positions = 40, .token_types = 2};
  model_.embeddings->table_type = DataType::kBFloat16;
  EXPECT_LE(EmbedError(model_, ids_), 2e-6);
}

TEST_F(EmbeddingsTest, AddTheFirstTaskType) {
  model_.embeddings->task_types = 3;
  EXPECT_LE(EmbedError(model_, ids_), 2e-6);
}

TEST_F(EmbeddingsTest, LeaveOutTheMasksOfEachSequence) {
  model_.embeddings->positions = model_.embeddings->token_types = 0;
  model_.embeddings->has_norm = false;  // it would hide the scale
  model_.embeddings->mask_id = ids_.words[2];
  const reference::TokenSequence words = {ids_.words, {}, {}};
  EXPECT_LE(EmbedError(model_, words), 2e-6);

  MemoryWeights weights = RandomWeights(model_, 11);
  EncoderRun run(LoadEncoder(model_, weights), 64, 2);
  const absl::Span<const int32_t> all = ids_.words;
  const std::vector<int32_t> bounds = {0, 2, 2, 3, 7};  // the third one is a mask alone
  run.Embed({.words = all.first(7), .positions = {}, .token_types = {}, .cu_seqlens = bounds}, 0);
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    const int64_t first = bounds[i], count = bounds[i + 1] - first;
    run.Embed({.words = all.subspan(first, count), .positions = {}, .token_types = {}}, 20);
    for (int64_t j = 0; j < count * 24; ++j) {
      ASSERT_EQ(run.input().row(first)[j], run.input().row(20)[j]) << first;
    }
  }
  EXPECT_EQ(run.input().row(2)[5], 0);
}

TEST_F(EmbeddingsTest, ProjectWordsWithTheirNeighbours) {
  model_.embeddings->norm_is_last = true;
  model_.embeddings->projects_words = true;
  model_.embeddings->always_projected = true;
  EXPECT_LE(EmbedError(model_, ids_), 4e-6);
  model_.embeddings->has_neighbours = true;
  model_.embeddings->width = 10;
  EXPECT_LE(EmbedError(model_, ids_), 4e-6);
}

TEST_F(EmbeddingsTest, HaveNoNeighboursBeyondAHoleOrASequence) {
  model_.embeddings->norm_is_last = true;
  model_.embeddings->projects_words = true;
  model_.embeddings->always_projected = true;
  model_.embeddings->has_neighbours = true;
  MemoryWeights weights = RandomWeights(model_, 11);
  EncoderRun run(LoadEncoder(model_, weights), 64, 2);
  const std::vector<int64_t> ordinals = {0, 1, 2, 4, 5, 50, 51};
  const absl::Span<const int32_t> words = ids_.words, positions = ids_.positions;
  run.Embed({.words = words.first(7),
             .positions = positions.first(7),
             .token_types = {},
             .ordinals = ordinals},
            0);
  const std::pair<int64_t, int64_t> parts[] = {{0, 3}, {3, 2}, {5, 2}};
  for (const auto& [first, count] : parts) {
    run.Embed({.words = words.subspan(first, count),
               .positions = positions.subspan(first, count),
               .token_types = {}},
              20);
    for (int64_t i = 0; i < count * 24; ++i) {
      ASSERT_EQ(run.input().row(first)[i], run.input().row(20)[i]) << first;
    }
  }
}

TEST_F(EmbeddingsTest, EmbedNothing) {
  EXPECT_EQ(EmbedError(model_, {}), 0);
  model_.embeddings->width = 10;
  EXPECT_EQ(EmbedError(model_, {}), 0);
}

}  // namespace float64_test
}  // namespace attendant::test_support
