// Tests of heads that are left out, by pruning or by a gate of 0: the numbers are the same, with
// less work.
#include "engine/model/pruned_heads.h"

#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/checkpoint/pruning.h"
#include "tests/engine/checkpoint/model_files.h"
#include "tests/support/engine_calls.h"
#include "tests/support/memory_weights.h"

namespace attendant::test_support {
namespace pruned_heads_test {

constexpr int64_t kLayers = 2;
constexpr int64_t kHeads = 4;
constexpr int64_t kMaxTokens = 256;

using Heads = std::vector<std::vector<int64_t>>;  // heads to prune in each layer

std::shared_ptr<const Encoder> LoadPruned(const ModelDescription& model, const Heads& heads,
                                          const ComputeMode& mode = {}) {
  const TempFolder folder;
  std::string json;
  for (size_t i = 0; i < heads.size(); ++i) {
    absl::StrAppend(&json, i == 0 ? "{" : ", ", "\"", i, "\": [", absl::StrJoin(heads[i], ", "),
                    "]");
  }
  folder.Write("prune.json", json + "}");
  Checkpoint checkpoint;
  checkpoint.description = model;
  checkpoint.weights = std::make_unique<MemoryWeights>(RandomWeights(model, 1));
  const absl::Status status = PruneHeads(folder.File("prune.json"), checkpoint);
  EXPECT_TRUE(status.ok()) << status;
  return LoadEncoder(checkpoint.description, *checkpoint.weights, mode);
}

std::shared_ptr<const Encoder> LoadWhole(const ModelDescription& model,
                                         const ComputeMode& mode = {}) {
  MemoryWeights weights = RandomWeights(model, 1);
  return LoadEncoder(model, weights, mode);
}

// Returns gates [layers, H]: 0 for these heads, else 1.
std::vector<float> GatesOf(const Heads& pruned, int64_t heads = kHeads) {
  std::vector<float> gates(pruned.size() * heads, 1.0f);
  for (size_t i = 0; i < pruned.size(); ++i) {
    for (const int64_t head : pruned[i]) gates[i * heads + head] = 0.0f;
  }
  return gates;
}

class PrunedHeadsTest : public ::testing::Test {
 protected:
  // Returns the rows of the answer. Also sets fully_masked_rows_.
  std::vector<Sequence> Run(const std::shared_ptr<const Encoder>& encoder,
                            absl::Span<const HeadGates> gates, int threads = 2,
                            absl::Span<const int32_t> wanted = {}) {
    const std::vector<int32_t> bounds =
        CumulativeLengths(sequences_, encoder->description().layer.hidden_size);
    EncoderRun run(encoder, kMaxTokens, threads);
    const PackedBatch batch = {
        .cu_seqlens = bounds, .bias = {}, .selected_rows = wanted, .head_gates = gates};
    FillInput(sequences_, run);
    const auto result = run.Encode(0, encoder->description().layers, batch, nobody_);
    EXPECT_TRUE(result.ok()) << result.status();
    fully_masked_rows_ = run.fully_masked_rows();
    std::vector<Sequence> rows;
    for (int64_t r = 0; r < result->rows; ++r) {
      rows.emplace_back(result->row(r), result->row(r) + result->cols);
    }
    return rows;
  }

  // Expects the same numbers, with the same bits except for the sign of zero.
  static void ExpectEqual(const std::vector<Sequence>& a, const std::vector<Sequence>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i], b[i]) << "row " << i;
  }

  void ExpectGateOfZeroIsPruning(const ModelDescription& model, const Heads& heads,
                                 const ComputeMode& mode = {}) {
    sequences_ = RandomSequences({20, 0, 7, 70, 1, 33}, model.layer.hidden_size, 1);
    const std::vector<float> gates = GatesOf(heads, model.layer.attention.heads);
    const std::vector<HeadGates> of_each(sequences_.size(),
                                         {gates.data(), model.layer.attention.heads});
    ExpectEqual(Run(LoadWhole(model, mode), of_each), Run(LoadPruned(model, heads, mode), {}));
  }

  void ExpectClose(const ModelDescription& model, const Heads& heads, const ComputeMode& mode,
                   double tolerance) {
    sequences_ = RandomSequences({20, 33}, model.layer.hidden_size, 1);
    const std::vector<float> gates = GatesOf(heads, model.layer.attention.heads);
    const std::vector<HeadGates> of_each(sequences_.size(),
                                         {gates.data(), model.layer.attention.heads});
    const std::vector<Sequence> gated = Run(LoadWhole(model, mode), of_each);
    const std::vector<Sequence> pruned = Run(LoadPruned(model, heads, mode), {});
    for (size_t i = 0; i < gated.size(); ++i) {
      for (size_t j = 0; j < gated[i].size(); ++j) {
        EXPECT_NEAR(gated[i][j], pruned[i][j], tolerance);
      }
    }
  }

  std::vector<Sequence> sequences_ = RandomSequences({20, 0, 7, 70, 1, 33}, kHeads * 16, 1);
  RunObserver nobody_;
  int64_t fully_masked_rows_ = 0;
};

TEST_F(PrunedHeadsTest, AreThoseOfAGateOfZero) {
  for (const NormPlacement placement : {NormPlacement::kPost, NormPlacement::kPre}) {
    ModelDescription model = SmallModel(kLayers, kHeads, 16);
    model.layer.norms.placement = placement;
    ExpectGateOfZeroIsPruning(model, {{1}, {0, 2, 3}});
    ExpectGateOfZeroIsPruning(model, {{}, {3}});
  }
}

// Products sum wide inputs, and widths that are not a multiple of 16, in another order.
TEST_F(PrunedHeadsTest, AreCloseToThoseOfAGateOfZeroAtOtherWidths) {
  ModelDescription model = SmallModel(kLayers, kHeads, 13);
  model.layer.attention.value_width = 9;
  ExpectClose(model, {{1}, {0, 2}}, {}, 1e-5);
  for (const int64_t width : {32, 64}) {
    ExpectClose(SmallModel(1, 12, width), {{0, 1, 4, 7, 8, 9, 11}}, {}, 2e-5);
  }
}

TEST_F(PrunedHeadsTest, AreThoseOfAGateOfZeroInBfloat16) {
  ExpectGateOfZeroIsPruning(SmallModel(kLayers, kHeads, 16), {{1}, {0, 2}},
                            BestMode(ComputeType::kBf16));
}

// Heads find their slopes, learned biases and rotation by their numbers.
TEST_F(PrunedHeadsTest, KeepTheirRelativePositions) {
  for (const RelativePositions kind :
       {RelativePositions::kAlibi, RelativePositions::kBuckets, RelativePositions::kRotary}) {
    ModelDescription model = SmallModel(kLayers, kHeads, 16);
    model.layer.relative_positions = {.kind = kind,
                                      .buckets = kind == RelativePositions::kBuckets ? 8 : 0,
                                      .max_distance = 16,
                                      .rotary = {RotaryFrequencies(16, 1000)}};
    ExpectGateOfZeroIsPruning(model, {{0, 1}, {2}});
  }
}

TEST_F(PrunedHeadsTest, OfSharedProjectionsAndSharedLayers) {
  ModelDescription model = SmallModel(kLayers, kHeads, 16);
  model.layer.attention.keys_are_queries = true;
  ExpectGateOfZeroIsPruning(model, {{1}, {0, 2}});
  model.layer.attention.values_are_keys = true;
  ExpectGateOfZeroIsPruning(model, {{1}, {0, 2}});
  model = SmallModel(kLayers, kHeads, 16);
  model.layer_map = {0, 0};
  ExpectGateOfZeroIsPruning(model, {{0, 2}, {0, 2}});
}

// int8 rotates and rounds all heads of a token together, so only the other types give the same
// bits.
TEST_F(PrunedHeadsTest, AreCloseToThoseOfAGateOfZeroInInt8) {
  ExpectClose(SmallModel(kLayers, kHeads, 32), {{1}, {0, 2}}, BestMode(ComputeType::kInt8), 0.1);
}

TEST_F(PrunedHeadsTest, AllOfALayerLeaveTheBiasOfTheOutput) {
  ModelDescription model = SmallModel(kLayers, kHeads, 16);
  ExpectGateOfZeroIsPruning(model, {{0, 1, 2, 3}, {2}});
  for (const bool has_scale : {false, true}) {
    model.layer.norms.placement = NormPlacement::kPre;
    model.layer.extras.has_branch_scale = has_scale;
    ExpectGateOfZeroIsPruning(model, {{2}, {0, 1, 2, 3}});
  }
}

TEST_F(PrunedHeadsTest, TakeMemoryWithThem) {
  const ModelDescription model = SmallModel(kLayers, kHeads, 64);
  const std::shared_ptr<const Encoder> pruned = LoadPruned(model, {{0, 1, 2}, {0, 1, 2}});
  EXPECT_LT(pruned->weight_bytes(), LoadWhole(model)->weight_bytes());
  const absl::StatusOr<int64_t> predicted = Encoder::PredictLoadBytes(pruned->description());
  ASSERT_TRUE(predicted.ok()) << predicted.status();
  EXPECT_LE(pruned->weight_bytes(), *predicted);
  EXPECT_LT(*predicted, *Encoder::PredictLoadBytes(model));
}

TEST_F(PrunedHeadsTest, AGateOfOneChangesNoBit) {
  const std::shared_ptr<const Encoder> encoder = LoadWhole(SmallModel(kLayers, kHeads, 16));
  const std::vector<float> gates(kHeads, 1.0f);
  const std::vector<HeadGates> of_each(sequences_.size(), {gates.data(), 0});
  const std::vector<Sequence> gated = Run(encoder, of_each), free = Run(encoder, {});
  for (size_t i = 0; i < free.size(); ++i) EXPECT_TRUE(BitEqual(gated[i], free[i])) << i;
}

// Computes each sequence alone, with its own gates, and all together, on one thread and on three.
TEST_F(PrunedHeadsTest, GatesOfASequenceAreItsOwnInvariance) {
  const std::shared_ptr<const Encoder> encoder = LoadWhole(SmallModel(kLayers, kHeads, 16));
  const std::vector<float> first = {0, 0.25f, 1, 0.5f}, second = {1, 0, 0, 1, 0.125f, 1, 0, 1};
  const std::vector<HeadGates> gates = {{first.data(), 0}, {}, {second.data(), kHeads},
                                        {first.data(), 0}, {}, {second.data(), kHeads}};
  const std::vector<Sequence> all = sequences_;
  const std::vector<Sequence> together = Run(encoder, gates, 1);
  const std::vector<Sequence> threads = Run(encoder, gates, 3);
  size_t row = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    sequences_ = {all[i]};
    for (const Sequence& alone : Run(encoder, {{gates[i]}}, 2)) {
      EXPECT_TRUE(BitEqual(alone, together[row]) && BitEqual(alone, threads[row])) << row;
      ++row;
    }
  }
}

TEST_F(PrunedHeadsTest, SelectedRowsAreGatedToo) {
  const std::shared_ptr<const Encoder> encoder =
      LoadPruned(SmallModel(kLayers, kHeads, 16), {{1}, {0}});
  const std::vector<float> gates = {1, 0, 0.5f, 1, 1, 0.5f, 1, 0};
  const std::vector<HeadGates> of_each(sequences_.size(), {gates.data(), kHeads});
  const std::vector<int32_t> wanted = {0, 5, 6, 40, 130};
  const std::vector<Sequence> all = Run(encoder, of_each);
  const std::vector<Sequence> some = Run(encoder, of_each, 2, wanted);
  for (const int32_t row : wanted) EXPECT_TRUE(BitEqual(some[row], all[row])) << row;
}

// A head that is left out is not computed, so none of its queries is counted as having no key.
TEST_F(PrunedHeadsTest, AGateOfZeroSkipsTheHead) {
  const std::shared_ptr<const Encoder> encoder = LoadWhole(SmallModel(1, kHeads, 16));
  const std::vector<float> values(70, -std::numeric_limits<float>::infinity());
  const AttentionBias bias{values.data(), 0, 0, 1};
  const std::vector<const AttentionBias*> of_each(1, &bias);
  const std::vector<float> gates = {0, 1, 0, 0.5f};
  const std::vector<HeadGates> head_gates = {{gates.data(), 0}};
  EncoderRun run(encoder, kMaxTokens, 2);
  FillInput({sequences_[3]}, run);
  const std::vector<int32_t> bounds = {0, 70};
  const auto result =
      run.Attend(0, AttendStage::kContext,
                 {.cu_seqlens = bounds, .bias = of_each, .head_gates = head_gates}, nobody_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(run.fully_masked_rows(), 2 * 70);
}

TEST_F(PrunedHeadsTest, RefusesGatesOfAnotherBatch) {
  EncoderRun run(LoadWhole(SmallModel(1, kHeads, 16)), kMaxTokens, 1);
  const std::vector<int32_t> bounds = {0, 2, 5};
  const std::vector<HeadGates> gates(1);
  EXPECT_EQ(
      run.Encode(0, 1, {.cu_seqlens = bounds, .bias = {}, .head_gates = gates}, nobody_).status(),
      absl::InvalidArgumentError("head_gates: expected 2 (one per sequence); got 1"));
}

TEST_F(PrunedHeadsTest, RefusesDescriptionsThatMakeNoSense) {
  ModelDescription model = SmallModel(1, kHeads, 16);
  model.SplitShapes();
  AttentionBlockShape& attention = model.layer_shapes[0].attention;
  attention.heads = 2;
  attention.head_numbers = {2, 1};
  EXPECT_EQ(Encoder::PredictLoadBytes(model).status(),
            absl::InvalidArgumentError("model description: head_numbers: expected 2 remaining "
                                       "heads of 4, in ascending order; got 2 1"));
  for (const std::vector<int64_t>& numbers : Heads{{}, {1}, {1, 2, 3}, {1, 4}, {-1, 2}, {1, 1}}) {
    attention.head_numbers = numbers;
    EXPECT_EQ(Encoder::PredictLoadBytes(model).status().code(), absl::StatusCode::kInvalidArgument);
  }
  model.layer_shapes[0] = WithoutHeads(model.layer, {1});
  EXPECT_TRUE(Encoder::PredictLoadBytes(model).ok());
  model.ChangeShapes(
      [](LayerShape& layer) { layer.attention.query_key_norms = QueryKeyNorms::kAllHeads; });
  EXPECT_EQ(Encoder::PredictLoadBytes(model).status(),
            absl::InvalidArgumentError("model description: heads cannot be pruned: its query and "
                                       "key norms span all heads"));
}

}  // namespace pruned_heads_test
}  // namespace attendant::test_support
