// Tests that a run creates no primitive and runs no reorder, from its first batch on, and allocates
// nothing after that batch. They count what the process takes from the heap without oneDNN's own
// allocations (2.6 makes a small map for each product), and the primitives of oneDNN that are
// created and run.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <tuple>
#include <utility>

#include "engine/base/aligned_buffer.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/engine_calls.h"
#include "tests/support/memory_weights.h"
#include "tests/support/onednn_counter.h"

namespace attendant::test_support {
namespace steady_state_test {

TEST(SteadyStateTest, AllocationsAreCounted) {
  const AllocationCounter allocations;
  const std::vector<Sequence> sequences = RandomSequences({1, 2}, 48, 1);
  EXPECT_GE(allocations.count(), 3);
}

TEST(SteadyStateTest, PrimitivesAndReordersAreCounted) {
  const OneDnnCounter onednn;
  // A shape that no other test of this program has.
  const ModelDescription model = SmallModel(1, 5, 11);
  MemoryWeights weights = RandomWeights(model, 1);
  LoadEncoder(model, weights, {.gemm = Gemm::kOneDnn});
  EXPECT_GT(onednn.primitives_created(), 0);
  EXPECT_GT(onednn.reorders_run(), 0);
}

constexpr int64_t kTokens = 300;

TEST(SteadyStateTest, BuffersAreCounted) {
  const AllocationCounter allocations;
  const AlignedBuffer<float> buffer(3);
  EXPECT_EQ(allocations.count(), 1);
}

void ExpectSteady(const AllocationCounter& allocations, const OneDnnCounter& onednn) {
  EXPECT_EQ(allocations.count(), 0);
  EXPECT_EQ(onednn.primitives_created(), 0);
  EXPECT_EQ(onednn.reorders_run(), 0);
}

// An optional part of models.
struct Kind {
  std::string name;
  std::function<void(ModelDescription&)> give;
};

void GiveRelative(ModelDescription& model, const RelativePositionShape& shape) {
  model.layer.relative_positions = shape;
}

std::vector<Kind> Kinds() {
  const auto attention = [](AttentionKind kind) {
    return [kind](ModelDescription& model) {
      model.layer.attention.kind = kind;
      model.layer.attention.linformer.keys = kind == AttentionKind::kLinformer ? 20 : 0;
      model.layer.attention.linformer.positions = kind == AttentionKind::kLinformer ? kTokens : 0;
    };
  };
  return {
      {"Post", [](ModelDescription&) {}},
      {"Pre", [](ModelDescription& model) { model.layer.norms.placement = NormPlacement::kPre; }},
      {"Sandwich",
       [](ModelDescription& model) { model.layer.norms.placement = NormPlacement::kSandwich; }},
      {"Gate",
       [](ModelDescription& model) {
         model.layer.feed_forward.has_gate = model.layer.extras.has_branch_scale = true;
         model.layer.norms.kind = NormKind::kRms;
       }},
      {"Mixture",
       [](ModelDescription& model) {
         model.layer.feed_forward.mixture = {4, 2};
       }},
      {"Convolution",
       [](ModelDescription& model) {
         model.layer.extras.convolution = {3, 2};
       }},
      {"Bottleneck",
       [](ModelDescription& model) {
         model.layer.extras.bottleneck.width = 24;
         model.layer.attention.key_width = model.layer.attention.value_width = 8;
         model.layer.extras.bottleneck.values_from_outside = true;
         model.layer.feed_forward.blocks = 2;
       }},
      {"Norms",
       [](ModelDescription& model) {
         model.layer.attention.query_key_norms = QueryKeyNorms::kAllHeads;
       }},
      {"Causal",
       [](ModelDescription& model) {
         model.layer.attention.key_value_heads = 1;
         model.layer.attention.causal = true;
         model.layer.attention.query_key_norms = QueryKeyNorms::kEachHead;
         GiveRelative(model, {.kind = RelativePositions::kRotary,
                              .rotary = {.frequencies = RotaryFrequencies(16, 1000)}});
       }},
      {"Window",
       [](ModelDescription& model) {
         model.layer.attention.window = 1;
         model.layer.attention.pattern = {
             .block = 4, .first_global = 1, .listed = BlockLists({{2, 9}, {20, 1}}, {6})};
       }},
      {"Buckets",
       [](ModelDescription& model) {
         GiveRelative(model, {RelativePositions::kBuckets, 32, 128});
       }},
      {"Alibi", [](ModelDescription& model) { GiveRelative(model, {RelativePositions::kAlibi}); }},
      {"Rotary",
       [](ModelDescription& model) {
         GiveRelative(
             model, {.kind = RelativePositions::kRotary, .rotary = {RotaryFrequencies(16, 1000)}});
       }},
      {"Disentangled",
       [](ModelDescription& model) {
         GiveRelative(model, {.kind = RelativePositions::kDisentangled,
                              .buckets = 16,
                              .max_distance = 80,
                              .scores_queries = true,
                              .scores_keys = true});
       }},
      {"Additive", attention(AttentionKind::kAdditive)},
      {"Linear", attention(AttentionKind::kLinear)},
      {"CausalLinear", attention(AttentionKind::kCausalLinear)},
      {"Linformer", attention(AttentionKind::kLinformer)},
  };
}

class SteadyKindTest : public ::testing::TestWithParam<std::tuple<Kind, ComputeType>> {
 protected:
  // Everything that can be asked of every model.
  void RunAll(absl::Span<const int32_t> bounds) {
    const int32_t wanted[] = {0, bounds[1], bounds.back() - 1};
    for (const int64_t rows_from : {1, 0}) {
      run_.SetRowPlan({.rows_from = rows_from});
      EXPECT_TRUE(run_.Encode(0, 2, {.cu_seqlens = bounds, .bias = {}}, nobody_).ok());
    }
    EXPECT_TRUE(
        run_.Encode(0, 2, {.cu_seqlens = bounds, .bias = {}, .selected_rows = wanted}, nobody_)
            .ok());
    for (const AttendStage stage :
         {AttendStage::kContext, AttendStage::kProjected, AttendStage::kBlock}) {
      EXPECT_TRUE(run_.Attend(1, stage, {.cu_seqlens = bounds, .bias = {}}, nobody_).ok());
    }
    if (!model_.layer.takes_cross_kv()) return;
    const auto cross_kv = run_.ProjectCrossKv(1, {.first_key = 96, .first_value = 160, .rows = 50});
    ASSERT_TRUE(cross_kv.ok());
    const CrossKv cross_kvs[] = {*cross_kv, *cross_kv, *cross_kv};
    EXPECT_TRUE(run_.Attend(1, AttendStage::kBlock,
                            {.cu_seqlens = bounds, .bias = {}, .cross_kv = cross_kvs}, nobody_)
                    .ok());
  }

  static ModelDescription Model(const Kind& kind) {
    ModelDescription model = SmallModel(2, 3, 16);
    kind.give(model);
    return model;
  }

  const ModelDescription model_ = Model(std::get<Kind>(GetParam()));
  MemoryWeights weights_ = RandomWeights(model_, 1);
  EncoderRun run_{LoadEncoder(model_, weights_, BestMode(std::get<ComputeType>(GetParam()))),
                  kTokens, 2};
  const std::vector<Sequence> sequences_ = RandomSequences({100, 37, 163}, 48, 1);
  const std::vector<int32_t> large_ = CumulativeLengths(sequences_, 48);
  RunObserver nobody_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, SteadyKindTest,
                         ::testing::Combine(::testing::ValuesIn(Kinds()),
                                            ::testing::ValuesIn(kComputeTypes)),
                         [](const auto& tested) {
                           return std::get<Kind>(tested.param).name + "_" +
                                  Name(std::get<ComputeType>(tested.param));
                         });

TEST_P(SteadyKindTest, AllocatesAndCreatesNothing) {
  const std::vector<int32_t> small = {0, 5, 70, 71};
  FillInput(sequences_, run_);
  const OneDnnCounter onednn;
  ASSERT_TRUE(run_.Encode(0, 2, {.cu_seqlens = large_, .bias = {}}, nobody_).ok());
  const AllocationCounter allocations;
  RunAll(small);
  RunAll(large_);
  ExpectSteady(allocations, onednn);
}

// Receives the probabilities of every layer, of three sequences each in room of its own, because
// threads write them at the same time.
class Receiver : public RunObserver {
 public:
  float* ProbabilitiesTarget(int64_t, int64_t sequence) override {
    return probabilities_.data() + sequence * kOfOne;
  }

 private:
  static constexpr int64_t kOfOne = 3 * 163 * 163;
  std::vector<float> probabilities_ = std::vector<float>(3 * kOfOne);
};

TEST(SteadyStateTest, NothingThatARequestAsksForAllocates) {
  for (const ComputeType type : kComputeTypes) {
    ModelDescription model = SmallModel(2, 3, 16);
    model.layer.relative_positions = {RelativePositions::kBuckets, 32, 128};
    MemoryWeights weights = RandomWeights(model, 1);
    EncoderRun run(LoadEncoder(model, weights, BestMode(type)), kTokens, 2);
    const std::vector<Sequence> sequences = RandomSequences({100, 37, 163}, 48, 1);
    const std::vector<int32_t> bounds = CumulativeLengths(sequences, 48);
    std::vector<int32_t> positions;
    for (size_t i = 0; i + 1 < bounds.size(); ++i) {
      for (int32_t r = bounds[i]; r < bounds[i + 1]; ++r) positions.push_back(50 + r - bounds[i]);
    }
    const std::vector<float> zeros(2 * kTokens, 0.0f), half(3, 0.5f);
    const AttentionBias key_bias = {zeros.data(), 0, 0, 1};
    const std::vector<const AttentionBias*> bias = {&key_bias, nullptr, &key_bias};
    const std::vector<HeadGates> gates(3, {half.data(), 0});
    const PackedBatch batch = {
        .cu_seqlens = bounds, .bias = bias, .positions = positions, .head_gates = gates};
    Receiver receiver;
    const auto encode = [&] {
      FillInput(sequences, run);
      const auto result = run.Encode(0, 2, batch, receiver);
      ASSERT_TRUE(result.ok()) << result.status();
    };
    encode();
    const AllocationCounter allocations;
    const OneDnnCounter onednn;
    encode();
    ExpectSteady(allocations, onednn);
  }
}

// The widths fill the tiles of the AMX GEMM, whose work no counter of oneDNN sees.
TEST(SteadyStateTest, NeitherProductsAllocate) {
  for (const ComputeMode& mode : NativeModes()) {
    const ModelDescription model = SmallModel(2, 4, 16);
    MemoryWeights weights = RandomWeights(model, 1);
    EncoderRun run(LoadEncoder(model, weights, mode), kTokens, 2);
    const std::vector<Sequence> sequences = RandomSequences({100, 37, 163}, 64, 1);
    const std::vector<int32_t> bounds = CumulativeLengths(sequences, 64);
    RunObserver nobody;
    const auto encode = [&] {
      FillInput(sequences, run);
      ASSERT_TRUE(run.Encode(0, 2, {.cu_seqlens = bounds, .bias = {}}, nobody).ok());
    };
    encode();
    const AllocationCounter allocations;
    const OneDnnCounter onednn;
    encode();
    EXPECT_EQ(allocations.count(), 0) << NameOf(mode);
    EXPECT_EQ(onednn.primitives_created() + onednn.reorders_run(), 0) << NameOf(mode);
    EXPECT_EQ(onednn.products_run() > 0, mode.gemm == Gemm::kOneDnn) << NameOf(mode);
  }
}

TEST(SteadyStateTest, EntriesAllocateNothing) {
  ModelDescription model = SmallModel(1, 3, 16);
  model.embeddings = {.width = 12, .vocabulary = 20, .positions = kTokens, .token_types = 2};
  MemoryWeights weights = RandomWeights(model, 1);
  EncoderRun texts(LoadEncoder(model, weights), kTokens, 2);
  const std::vector<int32_t> ids(100, 7);
  model.embeddings.reset();
  model.patch_embedding = {
      .feature_width = 20, .has_class = true, .positions = 101, .has_norm = true};
  weights = RandomWeights(model, 1);
  EncoderRun images(LoadEncoder(model, weights), kTokens, 2);
  std::vector<int32_t> places(100);
  for (int32_t i = 0; i < 100; ++i) places[i] = i;
  const auto enter = [&] {
    texts.Embed({.words = ids, .positions = ids, .token_types = {}}, 10);
    const MatrixView<float> features = images.FeatureRows(1, 100);
    for (int64_t r = 0; r < 100; ++r) std::fill_n(features.row(r), features.cols, 0.5f);
    images.ProjectFeatures(1, 100);
    images.AddPrefixTokens(places, 0);
  };
  enter();
  const AllocationCounter allocations;
  const OneDnnCounter onednn;
  enter();
  ExpectSteady(allocations, onednn);
}

}  // namespace steady_state_test
}  // namespace attendant::test_support
