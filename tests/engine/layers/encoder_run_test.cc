#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "engine/layers/encoder.h"
#include "tests/support/engine_calls.h"
#include "tests/support/memory_weights.h"
#include "tests/support/random_values.h"

namespace attendant::test_support {
namespace encoder_run_test {

constexpr int64_t kLayers = 4;
constexpr int64_t kHeads = 3;
constexpr int64_t kWidth = 48;
constexpr int64_t kMaxTokens = 64;

// A small model, and a batch of three sequences, the second of which is empty.
class EncoderRunTest : public ::testing::Test {
 protected:
  EncoderRunTest() { Load(SmallModel(kLayers, kHeads, 16)); }

  void Load(const ModelDescription& model) {
    MemoryWeights weights = RandomWeights(model, 1);
    encoder_ = LoadEncoder(model, weights);
    run_ = std::make_unique<EncoderRun>(encoder_, kMaxTokens, 2);
  }

  absl::StatusOr<MatrixView<const float>> Encode(int64_t first_layer, int64_t layers) {
    FillInput(sequences_, *run_);
    return run_->Encode(first_layer, layers, batch_, nobody_);
  }

  absl::StatusOr<MatrixView<const float>> Attend(int64_t layer, AttendStage stage) {
    FillInput(sequences_, *run_);
    return run_->Attend(layer, stage, batch_, nobody_);
  }

  std::shared_ptr<const Encoder> encoder_;
  std::unique_ptr<EncoderRun> run_;
  RunObserver nobody_;
  std::vector<Sequence> sequences_ = RandomSequences({20, 0, 7}, kWidth, 1);
  std::vector<int32_t> cu_seqlens_ = CumulativeLengths(sequences_, kWidth);
  PackedBatch batch_ = {.cu_seqlens = cu_seqlens_, .bias = {}};
};

std::vector<float> Copy(MatrixView<const float> view) {
  std::vector<float> copy;
  for (int64_t r = 0; r < view.rows; ++r) {
    copy.insert(copy.end(), view.row(r), view.row(r) + view.cols);
  }
  return copy;
}

void ExpectRefused(const absl::StatusOr<MatrixView<const float>>& result, absl::StatusCode code,
                   const std::string& message) {
  EXPECT_EQ(result.status().code(), code);
  EXPECT_EQ(std::string(result.status().message()), message);
}

TEST_F(EncoderRunTest, ASpanEqualsItsLayersOneByOne) {
  for (const NormPlacement placement : {NormPlacement::kPost, NormPlacement::kPre}) {
    ModelDescription model = SmallModel(kLayers, kHeads, 16);
    model.layer.norms.placement = placement;
    model.has_exit_norm = placement == NormPlacement::kPre;
    Load(model);
    std::vector<Sequence> chained = sequences_;
    for (int64_t i = 0; i < kLayers; ++i) chained = test_support::Encode(*run_, chained, i, 1);
    const std::vector<Sequence> whole = test_support::Encode(*run_, sequences_, 0, kLayers);
    for (size_t i = 0; i < whole.size(); ++i) EXPECT_TRUE(BitEqual(whole[i], chained[i]));
  }
}

TEST_F(EncoderRunTest, BlockWithoutFeedForwardEqualsTheLayer) {
  ModelDescription model = SmallModel(kLayers, kHeads, 16);
  model.layer.feed_forward.width = 0;
  Load(model);
  const std::vector<float> block = Copy(*Attend(1, AttendStage::kBlock));
  EXPECT_TRUE(BitEqual(block, Copy(*Encode(1, 1))));
}

TEST_F(EncoderRunTest, ContextHasTheWidthOfTheHeads) {
  ModelDescription model = SmallModel(kLayers, kHeads, 16);
  model.layer.attention.value_width = 5;
  Load(model);
  EXPECT_EQ(Attend(0, AttendStage::kContext)->cols, kHeads * 5);
  EXPECT_EQ(Attend(0, AttendStage::kProjected)->cols, kWidth);
  EXPECT_EQ(Attend(0, AttendStage::kBlock)->cols, kWidth);
  EXPECT_EQ(Attend(0, AttendStage::kBlock)->rows, 27);
}

TEST_F(EncoderRunTest, ABatchWithoutTokensGivesNoRows) {
  const std::vector<int32_t> empty = {0, 0, 0};
  const PackedBatch batch = {.cu_seqlens = empty, .bias = {}};
  for (const AttendStage stage :
       {AttendStage::kContext, AttendStage::kProjected, AttendStage::kBlock}) {
    const auto result = run_->Attend(0, stage, batch, nobody_);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->rows, 0);
    EXPECT_EQ(result->cols, kWidth);
  }
  const auto result = run_->Encode(0, kLayers, batch, nobody_);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->rows, 0);
}

// Records what it is shown, and answers WantsMore with true for the first `patience` times.
class Witness : public RunObserver {
 public:
  float* ProbabilitiesTarget(int64_t layer, int64_t sequence) override {
    if (lengths.empty()) return nullptr;
    std::vector<float>& target = probabilities[{layer, sequence}];
    target.assign(kHeads * lengths[sequence] * lengths[sequence], -1.0f);
    return target.data();
  }
  void AfterLayer(int64_t layer, MatrixView<const float> hidden_states) override {
    outputs.emplace_back(layer, Copy(hidden_states));
  }
  bool WantsMore() override { return patience-- > 0; }

  int patience = 100;
  std::vector<int64_t> lengths;  // lengths of the sequences whose probabilities are wanted
  std::vector<std::pair<int64_t, std::vector<float>>> outputs;
  std::map<std::pair<int64_t, int64_t>, std::vector<float>> probabilities;
};

TEST_F(EncoderRunTest, TheObserverSeesEachLayer) {
  Witness witness;
  FillInput(sequences_, *run_);
  ASSERT_TRUE(run_->Encode(1, 3, batch_, witness).ok());
  ASSERT_EQ(witness.outputs.size(), 3);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(witness.outputs[i].first, 1 + i);
    EXPECT_TRUE(BitEqual(witness.outputs[i].second, Copy(*Encode(1, 1 + i)))) << "layer " << 1 + i;
  }
}

TEST_F(EncoderRunTest, TheObserverSeesTheLastLayerBeforeTheExitNorm) {
  ModelDescription model = SmallModel(2, kHeads, 16);
  Load(model);
  const std::vector<float> last = Copy(*Encode(0, 2));
  model.has_exit_norm = true;
  MemoryWeights weights = RandomWeights(model, 1);
  EncoderRun run(LoadEncoder(model, weights), kMaxTokens, 1);
  FillInput(sequences_, run);
  Witness witness;
  const auto result = run.Encode(0, 2, batch_, witness);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(BitEqual(witness.outputs.back().second, last));
  EXPECT_FALSE(BitEqual(Copy(*result), last));
}

TEST_F(EncoderRunTest, AnObserverMayAbandonTheRun) {
  Witness witness;
  witness.patience = 1;
  FillInput(sequences_, *run_);
  ExpectRefused(run_->Encode(0, kLayers, batch_, witness), absl::StatusCode::kCancelled,
                "run: cancelled before layer 2");
  EXPECT_EQ(witness.outputs.size(), 2);
}

TEST_F(EncoderRunTest, ProbabilitiesOfAQuerySumToOne) {
  Witness witness;
  witness.lengths = {20, 0, 7};
  FillInput(sequences_, *run_);
  ASSERT_TRUE(run_->Encode(0, 2, batch_, witness).ok());
  EXPECT_EQ(witness.probabilities.size(), 6);
  for (const auto& [place, values] : witness.probabilities) {
    const int64_t length = witness.lengths[place.second];
    for (int64_t row = 0; row < kHeads * length; ++row) {
      double sum = 0;
      for (int64_t t = 0; t < length; ++t) sum += values[row * length + t];
      EXPECT_NEAR(sum, 1, 1e-6) << "layer " << place.first << ", sequence " << place.second;
    }
  }
}

TEST_F(EncoderRunTest, ProbabilitiesChangeNothing) {
  Witness witness;
  witness.lengths = {20, 0, 7};
  FillInput(sequences_, *run_);
  const std::vector<float> context = Copy(*run_->Attend(0, AttendStage::kContext, batch_, witness));
  EXPECT_EQ(witness.probabilities.size(), 3);
  EXPECT_TRUE(BitEqual(context, Copy(*Attend(0, AttendStage::kContext))));
}

TEST_F(EncoderRunTest, CountsQueriesThatHaveNoKey) {
  // The second query of the third sequence sees no key.
  std::vector<float> forbidden(7 * 7, 0.0f);
  for (int64_t t = 0; t < 7; ++t) forbidden[7 + t] = -std::numeric_limits<float>::infinity();
  const AttentionBias bias = {
      .data = forbidden.data(), .head_stride = 0, .query_stride = 7, .key_stride = 1};
  const std::array<const AttentionBias*, 3> of_sequences = {nullptr, nullptr, &bias};
  const PackedBatch batch = {.cu_seqlens = cu_seqlens_, .bias = of_sequences};
  FillInput(sequences_, *run_);
  const auto context = run_->Attend(0, AttendStage::kContext, batch, nobody_);
  ASSERT_TRUE(context.ok()) << context.status();
  EXPECT_EQ(run_->fully_masked_rows(), kHeads);
  for (int64_t j = 0; j < kWidth; ++j) EXPECT_EQ(context->row(21)[j], 0.0f);

  FillInput(sequences_, *run_);
  ASSERT_TRUE(run_->Encode(0, 3, batch, nobody_).ok());
  EXPECT_EQ(run_->fully_masked_rows(), 3 * kHeads);
  ASSERT_TRUE(Encode(0, 3).ok());
  EXPECT_EQ(run_->fully_masked_rows(), 0);
}

TEST_F(EncoderRunTest, AddsABiasToRelativePositions) {
  // The slopes of two heads, from the paper.
  constexpr std::array<double, 2> kSlopes = {0.0625, 0.00390625};
  const std::vector<float> bias = RandomValues(2 * 20 * 20, 5);
  std::vector<float> both = bias;
  for (int64_t i = 0; i < 2 * 20 * 20; ++i) {
    const int64_t distance = std::abs(i / 20 % 20 - i % 20);
    both[i] -= static_cast<float>(kSlopes[i / 400] * static_cast<double>(distance));
  }
  const auto context = [&](RelativePositions kind, const std::vector<float>& values) {
    ModelDescription model = SmallModel(1, 2, 24);
    model.layer.relative_positions.kind = kind;
    Load(model);
    const AttentionBias view = {
        .data = values.data(), .head_stride = 400, .query_stride = 20, .key_stride = 1};
    const std::array<const AttentionBias*, 3> of_sequences = {&view, nullptr, &view};
    FillInput(sequences_, *run_);
    const PackedBatch batch = {.cu_seqlens = cu_seqlens_, .bias = of_sequences};
    const auto result = run_->Attend(0, AttendStage::kContext, batch, nobody_);
    EXPECT_TRUE(result.ok()) << result.status();
    return Copy(*result);
  };
  const std::vector<float> expected = context(RelativePositions::kNone, both);
  const std::vector<float> actual = context(RelativePositions::kAlibi, bias);
  for (size_t i = 0; i < 27 * 48; ++i) EXPECT_NEAR(actual[i], expected[i], 2e-6) << i;
}

TEST_F(EncoderRunTest, RefusesALayerThatIsNotThere) {
  ExpectRefused(Attend(kLayers, AttendStage::kContext), absl::StatusCode::kInvalidArgument,
                "layer: expected 0..3; got 4");
  ExpectRefused(Attend(-1, AttendStage::kBlock), absl::StatusCode::kInvalidArgument,
                "layer: expected 0..3; got -1");
}

TEST_F(EncoderRunTest, RefusesSpansOutsideTheModel) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const std::pair<int64_t, int64_t> spans[] = {{0, 5}, {3, 2}, {4, 1}, {-1, 2}, {0, 0}, {1, kMost}};
  for (const auto& [first_layer, layers] : spans) {
    ExpectRefused(Encode(first_layer, layers), absl::StatusCode::kInvalidArgument,
                  "layers: expected a span of at least 1 layer in 0..3; got first " +
                      std::to_string(first_layer) + ", count " + std::to_string(layers));
  }
}

TEST_F(EncoderRunTest, RefusesProjectedWithoutOutputProjection) {
  ModelDescription model = SmallModel(kLayers, kHeads, 16);
  model.layer.attention.has_output_projection = false;
  Load(model);
  ExpectRefused(Attend(0, AttendStage::kProjected), absl::StatusCode::kInvalidArgument,
                "stage: expected CONTEXT or BLOCK (the model has no output projection); got "
                "PROJECTED");
}

TEST_F(EncoderRunTest, RefusesToChainLayersThatChangeTheWidth) {
  ModelDescription model = SmallModel(2, kHeads, 16);
  model.layer.norms.placement = NormPlacement::kNone;
  model.layer.feed_forward.width = 0;
  model.layer.attention.has_output_projection = false;
  model.layer.attention.value_width = 5;
  Load(model);
  EXPECT_EQ(Encode(1, 1)->cols, 15);
  EXPECT_EQ(Attend(0, AttendStage::kBlock)->cols, 15);
  ExpectRefused(Encode(0, 2), absl::StatusCode::kInvalidArgument,
                "layers: expected 1 layer (a layer maps 48 columns to 15); got 2");
}

TEST_F(EncoderRunTest, RefusesMoreTokensThanItHasRoomFor) {
  const std::vector<int32_t> too_many = {0, 30, 65};
  const PackedBatch batch = {.cu_seqlens = too_many, .bias = {}};
  ExpectRefused(run_->Encode(0, 1, batch, nobody_), absl::StatusCode::kResourceExhausted,
                "batch: expected at most 64 tokens; got 65");
  ExpectRefused(run_->Attend(0, AttendStage::kContext, batch, nobody_),
                absl::StatusCode::kResourceExhausted, "batch: expected at most 64 tokens; got 65");
}

TEST_F(EncoderRunTest, RefusesWhatIsNoPackedBatch) {
  const std::vector<std::vector<int32_t>> bounds = {{}, {1, 2}, {0, 5, 4}, {0, -1}};
  for (const std::vector<int32_t>& bad : bounds) {
    ExpectRefused(run_->Encode(0, 1, {.cu_seqlens = bad, .bias = {}}, nobody_),
                  absl::StatusCode::kInvalidArgument,
                  "cu_seqlens: expected a non-decreasing list from 0");
  }
  const std::array<const AttentionBias*, 2> two = {nullptr, nullptr};
  ExpectRefused(run_->Encode(0, 1, {.cu_seqlens = cu_seqlens_, .bias = two}, nobody_),
                absl::StatusCode::kInvalidArgument, "bias: expected 3 (one per sequence); got 2");
}

TEST_F(EncoderRunTest, RefusesPositionsThatDoNotFit) {
  const std::vector<int32_t> few = {0, 1};
  ExpectRefused(
      run_->Encode(0, 1, {.cu_seqlens = cu_seqlens_, .bias = {}, .positions = few}, nobody_),
      absl::StatusCode::kInvalidArgument,
      absl::StrCat("positions: expected ", cu_seqlens_.back(), " (one per token); got 2"));
  for (const int32_t bad : {-1, 64}) {
    std::vector<int32_t> positions(cu_seqlens_.back());
    positions.back() = bad;
    ExpectRefused(
        run_->Encode(0, 1, {.cu_seqlens = cu_seqlens_, .bias = {}, .positions = positions},
                     nobody_),
        absl::StatusCode::kInvalidArgument, absl::StrCat("positions: expected 0..63; got ", bad));
  }
}

TEST_F(EncoderRunTest, FillsItsRoomToTheLastToken) {
  const std::vector<Sequence> full = RandomSequences({30, 34}, kWidth, 1);
  EXPECT_EQ(test_support::Encode(*run_, full, 0, 1).size(), 2);
  EXPECT_EQ(run_->input().rows, kMaxTokens);
  EXPECT_EQ(run_->input().cols, kWidth);
}

TEST(PredictBytesTest, IsWhatARunHolds) {
  ModelDescription with_embeddings = SmallModel(2, 2, 16);
  with_embeddings.embeddings = {.width = 8, .vocabulary = 9, .positions = 5, .token_types = 1};
  ModelDescription attention_only = SmallModel(1, 2, 16);
  attention_only.layer.norms.placement = NormPlacement::kNone;
  attention_only.layer.feed_forward.width = 0;
  ModelDescription gated = SmallModel(2, 3, 26);
  gated.layer.feed_forward.has_gate = true;
  ModelDescription mixed = gated;
  mixed.layer.feed_forward.mixture = {5, 2};
  for (const ModelDescription& model :
       {SmallModel(2, 3, 26), with_embeddings, attention_only, gated, mixed}) {
    MemoryWeights weights = RandomWeights(model, 1);
    for (const ComputeType type : kComputeTypes) {
      const ComputeMode mode = BestMode(type);
      const auto encoder = LoadEncoder(model, weights, mode);
      for (int64_t max_tokens : {1, 16, 100, 3000}) {
        for (int threads : {1, 3}) {
          const absl::StatusOr<int64_t> predicted =
              EncoderRun::PredictBytes(model, max_tokens, threads, mode);
          ASSERT_TRUE(predicted.ok()) << predicted.status();
          EXPECT_EQ(*predicted, EncoderRun(encoder, max_tokens, threads).bytes());
        }
      }
    }
  }
}

TEST(PredictBytesTest, CountsThePackedInputsOfTheType) {
  const ModelDescription model = SmallModel(1, 2, 16);  // E = 32, F = 64
  const auto bytes = [&](const ComputeMode& mode) {
    return *EncoderRun::PredictBytes(model, 160, 1, mode);
  };
  const int64_t f32 = bytes({});
  EXPECT_EQ(bytes({ComputeType::kBf16x3, false}) - f32, 160 * (32 + 64) * 2 * 2);
  EXPECT_EQ(bytes({ComputeType::kBf16x3, true}) - f32, 160 * (32 + 64) * 2 * 4);
  EXPECT_EQ(bytes({ComputeType::kBf16, false}) - f32, 160 * (32 + 64) * 2);
  EXPECT_EQ(bytes({ComputeType::kInt8, false}) - f32, 160 * (32 + 4 + 64 + 4));
  EXPECT_EQ(bytes({ComputeType::kInt8, true}) - f32, 160 * (32 * 4 + 4 + 64 * 4 + 4));
}

TEST(PredictBytesTest, BoundsTheFeedForwardBuffer) {
  ModelDescription model = SmallModel(1, 2, 16);
  model.layer.feed_forward.width = 1 << 20;
  const int64_t of_1024 = *EncoderRun::PredictBytes(model, 1024, 1);
  const int64_t of_16384 = *EncoderRun::PredictBytes(model, 16384, 1);
  EXPECT_LT(of_16384 - of_1024, int64_t{1024} * (1 << 20));
}

// The rows of experts are those of two experts for a token, and up to 15 of each expert for whole
// tiles: not more for longer batches than the feed-forward block takes at a time.
TEST(PredictBytesTest, BoundsTheRowsOfExperts) {
  const auto bytes = [](const MixtureShape& mixture, int64_t max_tokens) {
    ModelDescription model = SmallModel(1, 2, 16);
    model.layer.feed_forward.mixture = mixture;
    return *EncoderRun::PredictBytes(model, max_tokens, 1);
  };
  const auto added = [&](int64_t max_tokens) {
    return bytes({8, 2}, max_tokens) - bytes({}, max_tokens);
  };
  EXPECT_GE(added(512), (2 * 512 + 8 * 15) * 32 * 4);
  EXPECT_LE(added(512), (2 * 512 + 8 * 16) * 32 * 4 + 512 * (8 + 2 * 3) * 4 + 1024);
  EXPECT_EQ(added(16384), added(1024));
}

TEST(PredictBytesTest, RefusesWhatCannotBe) {
  const ModelDescription model = SmallModel(1, 2, 16);
  for (const auto& [max_tokens, threads] : {std::pair<int64_t, int>{0, 1},
                                            {-5, 1},
                                            {16, 0},
                                            {std::numeric_limits<int64_t>::max(), 1}}) {
    const absl::Status status = EncoderRun::PredictBytes(model, max_tokens, threads).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(),
              absl::StrCat("run: expected at least 1 token and 1 thread, and buffers of less than "
                           "2^63 bytes; got ",
                           max_tokens, " tokens and ", threads, " threads"));
  }
}

}  // namespace encoder_run_test
}  // namespace attendant::test_support
