// Tests of a promise: the bits of a sequence do not depend on the other sequences in its batch, on
// the number of threads or on how these divide the work.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <tuple>

#include "engine/checkpoint/checkpoint.h"
#include "tests/support/engine_calls.h"
#include "tests/support/memory_weights.h"

namespace attendant::test_support {
namespace invariance_test {

constexpr int64_t kMaxTokens = 1100;
constexpr std::array kTeams = {1, 2, 1, 2, 1, 2, 1, 2, 3, 4};
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::array<float, 3> kNonFinite = {std::numeric_limits<float>::quiet_NaN(), kInfinity,
                                             -kInfinity};

// Computes each of `sequences` alone on one thread.
std::vector<Sequence> EachAlone(const std::shared_ptr<const Encoder>& encoder,
                                const std::vector<Sequence>& sequences) {
  EncoderRun run(encoder, kMaxTokens, 1);
  std::vector<Sequence> outputs;
  for (const Sequence& sequence : sequences) {
    outputs.push_back(Encode(run, *encoder, {sequence}).front());
  }
  return outputs;
}

// Computes `batches` random selections of the sequences, in random order, on 1 to 4 threads in turn
// (more than there are cores are slow, and so take fewer turns). In some batches one sequence has a
// value that is not finite, which must not reach the others.
void ExpectSameInAnyBatch(const std::shared_ptr<const Encoder>& encoder,
                          const std::vector<Sequence>& sequences, int batches) {
  const std::vector<Sequence> alone = EachAlone(encoder, sequences);
  std::vector<EncoderRun> runs;
  for (int threads : {1, 2, 3, 4}) runs.emplace_back(encoder, kMaxTokens, threads);
  std::mt19937 random(5);
  std::vector<size_t> order(sequences.size());
  std::iota(order.begin(), order.end(), 0);
  for (int batch = 0; batch < batches; ++batch) {
    std::shuffle(order.begin(), order.end(), random);
    const size_t count = 1 + random() % order.size();
    std::vector<Sequence> chosen;
    for (size_t i = 0; i < count; ++i) chosen.push_back(sequences[order[i]]);
    const size_t poisoned = batch % 3 == 0 ? random() % count : count;
    if (poisoned < count) {
      chosen[poisoned][random() % chosen[poisoned].size()] =
          kNonFinite[random() % kNonFinite.size()];
    }
    const int threads = kTeams[batch % kTeams.size()];
    runs[threads - 1].SetRowPlan({.rows_from = batch % 4 < 2 ? 0 : 1});
    const std::vector<Sequence> outputs = Encode(runs[threads - 1], *encoder, chosen);
    for (size_t i = 0; i < count; ++i) {
      if (i == poisoned) continue;
      ASSERT_TRUE(BitEqual(outputs[i], alone[order[i]]))
          << "sequence " << order[i] << " at place " << i << " of " << count << " in batch "
          << batch << " on " << threads << " threads";
    }
  }
}

class InvarianceTest : public ::testing::TestWithParam<ComputeType> {
 protected:
  // The other types take fewer batches: outside products and attention they compute like float32.
  int Batches(int in_f32) const { return mode_.type == ComputeType::kF32 ? in_f32 : in_f32 / 5; }

  const ComputeMode mode_ = BestMode(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Types, InvarianceTest, ::testing::ValuesIn(kComputeTypes),
                         [](const auto& tested) { return Name(tested.param); });

TEST_P(InvarianceTest, GateRmsNormBranchScaleAndBuckets) {
  ModelDescription model = SmallModel(3, 3, 16);
  model.layer_map = {0, 1, 0};
  model.layer.feed_forward.has_gate = true;
  model.layer.extras.has_branch_scale = true;
  model.layer.norms.kind = NormKind::kRms;
  model.layer.relative_positions = {RelativePositions::kBuckets, 32, 128};
  MemoryWeights weights = RandomWeights(model, 1);
  ExpectSameInAnyBatch(LoadEncoder(model, weights, mode_),
                       RandomSequences({1, 2, 3, 7, 15, 16, 17, 31, 40, 64, 65, 90}, 48, 1),
                       Batches(100));
}

TEST_P(InvarianceTest, Disentangled) {
  for (const bool shares_projections : {false, true}) {
    ModelDescription model = SmallModel(2, 3, 16);
    model.layer.relative_positions = {RelativePositions::kDisentangled, 16, 80};
    model.layer.relative_positions.scores_queries = true;
    model.layer.relative_positions.scores_keys = true;
    model.layer.relative_positions.shares_projections = shares_projections;
    MemoryWeights weights = RandomWeights(model, 1);
    ExpectSameInAnyBatch(LoadEncoder(model, weights, mode_),
                         RandomSequences({1, 2, 3, 7, 15, 16, 17, 31, 40, 64, 65, 90}, 48, 1),
                         Batches(50));
  }
}

// Who shares a batch changes which rows an expert computes together, and how many.
TEST_P(InvarianceTest, MixtureOfExperts) {
  for (const NormPlacement placement : {NormPlacement::kPost, NormPlacement::kPre}) {
    ModelDescription model = SmallModel(3, 3, 16);
    model.layer.norms.placement = placement;
    model.layer.feed_forward.mixture = {5, 2};
    model.SplitShapes();
    model.layer_shapes[1].feed_forward.mixture = {};
    MemoryWeights weights = RandomWeights(model, 1);
    ExpectSameInAnyBatch(LoadEncoder(model, weights, mode_),
                         RandomSequences({1, 2, 3, 7, 15, 16, 17, 31, 40, 64, 65, 90}, 48, 1),
                         Batches(100));
  }
}

TEST_P(InvarianceTest, Convolution) {
  ModelDescription model = SmallModel(2, 3, 16);
  model.layer.extras.convolution = {.taps = 5, .groups = 2};
  MemoryWeights weights = RandomWeights(model, 1);
  ExpectSameInAnyBatch(LoadEncoder(model, weights, mode_),
                       RandomSequences({1, 2, 3, 7, 15, 16, 17, 31, 40, 64, 65, 90}, 48, 1),
                       Batches(50));
}

TEST_P(InvarianceTest, Bottleneck) {
  ModelDescription model = SmallModel(2, 3, 16);
  model.layer.extras.bottleneck.width = 24;
  model.layer.attention.key_width = model.layer.attention.value_width = 8;
  model.layer.norms.kind = NormKind::kAffine;
  model.layer.extras.bottleneck.values_from_outside = true;
  model.layer.feed_forward.blocks = 2;
  MemoryWeights weights = RandomWeights(model, 1);
  ExpectSameInAnyBatch(LoadEncoder(model, weights, mode_),
                       RandomSequences({1, 2, 3, 7, 15, 16, 17, 31, 40, 64, 65, 90}, 48, 1),
                       Batches(50));
}

TEST_P(InvarianceTest, OtherKindsOfAttention) {
  for (const AttentionKind kind : {AttentionKind::kAdditive, AttentionKind::kLinear,
                                   AttentionKind::kCausalLinear, AttentionKind::kLinformer}) {
    ModelDescription model = SmallModel(2, 3, 16);
    model.layer.attention.kind = kind;
    if (kind == AttentionKind::kLinformer) {
      model.layer.attention.linformer.keys = 20;
      model.layer.attention.linformer.positions = 100;
    }
    model.layer.attention.score_scale = 0.05f;
    MemoryWeights weights = RandomWeights(model, 1);
    ExpectSameInAnyBatch(LoadEncoder(model, weights, mode_),
                         RandomSequences({1, 2, 3, 7, 15, 16, 17, 31, 40, 64, 65, 90}, 48, 1),
                         Batches(50));
  }
}

TEST_P(InvarianceTest, CausalHeadsThatShareKeysAndValues) {
  ModelDescription model = SmallModel(2, 6, 16);
  model.layer.attention.key_value_heads = 2;
  model.layer.attention.causal = true;
  model.layer.attention.query_key_norms = QueryKeyNorms::kEachHead;
  model.layer.relative_positions = {.kind = RelativePositions::kRotary,
                                    .rotary = {.frequencies = RotaryFrequencies(16, 1000)}};
  MemoryWeights weights = RandomWeights(model, 1);
  ExpectSameInAnyBatch(LoadEncoder(model, weights, mode_),
                       RandomSequences({1, 2, 3, 7, 15, 16, 17, 31, 40, 64, 65, 90}, 96, 1),
                       Batches(50));
}

TEST_P(InvarianceTest, Blocks) {
  ModelDescription model = SmallModel(2, 3, 16);
  model.layer.attention.window = 1;
  model.layer.attention.pattern = {
      .block = 4, .first_global = 1, .last_global = 1, .first_repeats = 3, .full_up_to = 30};
  MemoryWeights weights = RandomWeights(model, 1);
  ExpectSameInAnyBatch(LoadEncoder(model, weights, mode_),
                       RandomSequences({1, 2, 3, 7, 15, 16, 17, 31, 40, 64, 65, 90}, 48, 1),
                       Batches(50));
}

TEST_P(InvarianceTest, ListedBlocks) {
  ModelDescription model = SmallModel(2, 3, 16);
  model.layer.attention.window = 1;
  model.layer.attention.pattern = {
      .block = 4,
      .last_global = 1,
      .listed = BlockLists({{2, 9}, {3, 0}, {8, 2}, {8, 5}, {20, 1}}, {6})};
  MemoryWeights weights = RandomWeights(model, 1);
  ExpectSameInAnyBatch(LoadEncoder(model, weights, mode_),
                       RandomSequences({1, 2, 3, 7, 15, 16, 17, 31, 40, 64, 65, 90}, 48, 1),
                       Batches(50));
}

TEST_P(InvarianceTest, AlibiAndRotaryAndAWindow) {
  for (const RelativePositions kind : {RelativePositions::kAlibi, RelativePositions::kRotary}) {
    ModelDescription model = SmallModel(2, 3, 16);
    model.layer.relative_positions.kind = kind;
    model.layer.attention.window = 20;
    const RotaryShape rotary = {RotaryFrequencies(16, 1000)};
    model.layer.relative_positions.rotary = rotary;
    model.SplitShapes();
    model.layer_shapes[1].attention.window = 0;
    MemoryWeights weights = RandomWeights(model, 1);
    ExpectSameInAnyBatch(LoadEncoder(model, weights, mode_),
                         RandomSequences({1, 2, 3, 7, 15, 16, 17, 31, 40, 64, 65, 90}, 48, 1),
                         Batches(50));
  }
}

TEST_P(InvarianceTest, SmallModel) {
  const ModelDescription model = SmallModel(2, 3, 16);
  MemoryWeights weights = RandomWeights(model, 1);
  ExpectSameInAnyBatch(LoadEncoder(model, weights, mode_),
                       RandomSequences({1, 2, 3, 7, 15, 16, 17, 31, 40, 64, 65, 90}, 48, 1), 1000);
}

// The shape is large enough for every size of tile in products of several panels, and for attention
// to more keys than it takes at once.
TEST_P(InvarianceTest, BertBaseWidths) {
  ModelDescription model = SmallModel(1, 12, 64);
  model.layer.feed_forward.width = 3072;
  MemoryWeights weights = RandomWeights(model, 1);
  ExpectSameInAnyBatch(LoadEncoder(model, weights, mode_),
                       RandomSequences({1, 16, 33, 40, 100, 130, 250, 513}, 768, 1), 12);
}

// Batches have more rows than a feed-forward block takes at once.
TEST_P(InvarianceTest, RowsOfEachThread) {
  constexpr int64_t kTokens = 1300;
  for (const auto& [placement, mixture] : {std::pair{NormPlacement::kPost, MixtureShape()},
                                           {NormPlacement::kPre, {}},
                                           {NormPlacement::kSandwich, {}},
                                           {NormPlacement::kPre, {4, 2}}}) {
    ModelDescription model = SmallModel(2, 3, 16);
    model.layer.norms.placement = placement;
    model.layer.feed_forward.mixture = mixture;
    MemoryWeights weights = RandomWeights(model, 1);
    const auto encoder = LoadEncoder(model, weights, mode_);
    const std::vector<Sequence> sequences = RandomSequences({400, 1, 333, 65, 477}, 48, 1);
    EncoderRun one(encoder, kTokens, 1);
    const std::vector<Sequence> expected = Encode(one, *encoder, sequences);
    for (const int threads : {1, 2, 3, 4}) {
      EncoderRun run(encoder, kTokens, threads);
      for (const int64_t rows_from : {0, 1, 512}) {
        run.SetRowPlan({.rows_from = rows_from});
        const std::vector<Sequence> outputs = Encode(run, *encoder, sequences);
        for (size_t i = 0; i < outputs.size(); ++i) {
          ASSERT_TRUE(BitEqual(outputs[i], expected[i]))
              << "sequence " << i << ", " << threads << " threads, rows from " << rows_from;
        }
      }
    }
  }
}

TEST_P(InvarianceTest, PreNormModelOfOddWidths) {
  ModelDescription model = SmallModel(2, 3, 26);
  model.layer.norms.placement = NormPlacement::kPre;
  model.layer.feed_forward.width = 101;
  MemoryWeights weights = RandomWeights(model, 1);
  ExpectSameInAnyBatch(LoadEncoder(model, weights, mode_),
                       RandomSequences({1, 5, 9, 16, 33, 70, 121}, 78, 1), Batches(60));
}

TEST_P(InvarianceTest, MiniLm) {
  absl::StatusOr<Checkpoint> checkpoint = OpenCheckpoint("synthetic:minilm-l6", {});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  checkpoint->description.embeddings.reset();
  const auto encoder = LoadEncoder(checkpoint->description, *checkpoint->weights, mode_);
  ExpectSameInAnyBatch(encoder, RandomSequences({1, 5, 16, 23, 50, 64, 100, 129}, 384, 1),
                       Batches(12));
}

class NonFiniteTest : public ::testing::TestWithParam<std::tuple<ComputeType, float>> {};

TEST_P(NonFiniteTest, StaysInItsSequence) {
  const auto& [type, value] = GetParam();
  for (const NormPlacement placement : {NormPlacement::kPost, NormPlacement::kPre}) {
    ModelDescription model = SmallModel(2, 2, 16);
    model.layer.norms.placement = placement;
    MemoryWeights weights = RandomWeights(model, 1);
    const auto encoder = LoadEncoder(model, weights, BestMode(type));
    std::vector<Sequence> sequences = RandomSequences({5, 20, 9}, 32, 1);
    const std::vector<Sequence> alone = EachAlone(encoder, sequences);
    sequences[1][70] = value;
    EncoderRun run(encoder, kMaxTokens, 2);
    const std::vector<Sequence> outputs = Encode(run, *encoder, sequences);
    EXPECT_TRUE(BitEqual(outputs[0], alone[0]));
    EXPECT_TRUE(BitEqual(outputs[2], alone[2]));
    EXPECT_TRUE(std::isnan(outputs[1][70]));
    // The value does not stay in the run's memory either.
    EXPECT_TRUE(BitEqual(Encode(run, *encoder, {sequences[0]}).front(), alone[0]));
  }
}

INSTANTIATE_TEST_SUITE_P(Values, NonFiniteTest,
                         ::testing::Combine(::testing::ValuesIn(kComputeTypes),
                                            ::testing::ValuesIn(kNonFinite)));

}  // namespace invariance_test
}  // namespace attendant::test_support
