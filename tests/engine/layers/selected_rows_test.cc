// Tests that the last layer of a span computes only the selected rows, with unchanged bits.
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <utility>

#include "engine/kernels/gemm/gemm.h"
#include "tests/support/engine_calls.h"
#include "tests/support/memory_weights.h"
#include "tests/support/onednn_counter.h"

namespace attendant::test_support {
namespace selected_rows_test {

constexpr int64_t kLayers = 2;
constexpr int64_t kHeads = 3;
constexpr int64_t kMaxTokens = 256;

class SelectedRowsTest : public ::testing::Test {
 protected:
  void Load(const ModelDescription& model, const ComputeMode& mode = {}) {
    MemoryWeights weights = RandomWeights(model, 1);
    encoder_ = LoadEncoder(model, weights, mode);
    sequences_ = RandomSequences({20, 0, 7, 70, 1, 33}, model.layer.hidden_size, 1);
    cu_seqlens_ = CumulativeLengths(sequences_, model.layer.hidden_size);
  }

  // Returns all rows, of which only the selected ones are defined.
  std::vector<Sequence> Rows(absl::Span<const int32_t> wanted, int threads, RunObserver& observer) {
    EncoderRun run(encoder_, kMaxTokens, threads);
    FillInput(sequences_, run);
    const auto result =
        run.Encode(0, encoder_->description().layers,
                   {.cu_seqlens = cu_seqlens_, .bias = bias_, .selected_rows = wanted}, observer);
    EXPECT_TRUE(result.ok()) << result.status();
    fully_masked_rows_ = run.fully_masked_rows();
    std::vector<Sequence> rows;
    for (int64_t r = 0; r < result->rows; ++r) {
      rows.emplace_back(result->row(r), result->row(r) + result->cols);
    }
    return rows;
  }

  // The rows that pooling by first token, by last token and by both reads; all rows; and others.
  std::vector<std::vector<int32_t>> Selections() const {
    std::vector<int32_t> first, last, both, odd, all;
    for (size_t i = 0; i + 1 < cu_seqlens_.size(); ++i) {
      const int32_t begin = cu_seqlens_[i], end = cu_seqlens_[i + 1];
      if (begin == end) continue;
      first.push_back(begin);
      last.push_back(end - 1);
      both.push_back(begin);
      if (end - begin > 1) both.push_back(end - 1);
    }
    for (int32_t row = 0; row < cu_seqlens_.back(); ++row) {
      all.push_back(row);
      if (row % 7 % 3 == 1) odd.push_back(row);
    }
    return {first, last, both, odd, all, {cu_seqlens_.back() - 1}};
  }

  void ExpectSameBits() {
    const std::vector<Sequence> all = Rows({}, 1, nobody_);
    for (const std::vector<int32_t>& wanted : Selections()) {
      for (const int threads : {1, 3}) {
        const std::vector<Sequence> rows = Rows(wanted, threads, nobody_);
        ASSERT_EQ(rows.size(), all.size());
        for (const int32_t row : wanted) EXPECT_TRUE(BitEqual(rows[row], all[row])) << row;
      }
    }
  }

  void ExpectSameBitsOf(const ModelDescription& model, const ComputeMode& mode = {}) {
    Load(model, mode);
    ExpectSameBits();
  }

  std::shared_ptr<const Encoder> encoder_;
  std::vector<Sequence> sequences_;
  std::vector<int32_t> cu_seqlens_;
  std::vector<const AttentionBias*> bias_;
  RunObserver nobody_;
  int64_t fully_masked_rows_ = 0;
};

TEST_F(SelectedRowsTest, HaveTheBitsOfAFullRunWithAConvolution) {
  ModelDescription model = SmallModel(kLayers, kHeads, 16);
  model.layer.extras.convolution = {.taps = 5, .groups = 3};
  ExpectSameBitsOf(model);
}

TEST_F(SelectedRowsTest, HaveTheBitsOfAFullRunWithAMixture) {
  ModelDescription model = SmallModel(kLayers, kHeads, 16);
  model.layer.feed_forward.mixture = {4, 2};
  ExpectSameBitsOf(model);
}

TEST_F(SelectedRowsTest, HaveTheBitsOfAFullRun) {
  for (const NormPlacement placement :
       {NormPlacement::kPost, NormPlacement::kPre, NormPlacement::kSandwich}) {
    ModelDescription model = SmallModel(kLayers, kHeads, 16);
    model.layer.norms.placement = placement;
    model.has_exit_norm = model.layer.norms.are_first();
    ExpectSameBitsOf(model);
  }
}

TEST_F(SelectedRowsTest, HaveTheBitsOfAFullRunInEveryType) {
  for (const ComputeType type : kComputeTypes) {
    ExpectSameBitsOf(SmallModel(kLayers, kHeads, 64), BestMode(type));
  }
}

TEST_F(SelectedRowsTest, HaveTheBitsOfAFullRunWithQueriesAndKeysInOnePanel) {
  ASSERT_NE(256 % kPanelWidth, 0);
  ExpectSameBitsOf(SmallModel(kLayers, 4, 64));
}

TEST_F(SelectedRowsTest, HaveTheBitsOfAFullRunWithSharedProjections) {
  for (const auto& [keys_are_queries, values_are_keys] :
       {std::pair{true, false}, {false, true}, {true, true}}) {
    ModelDescription model = SmallModel(kLayers, kHeads, 64);
    model.layer.attention.keys_are_queries = keys_are_queries;
    model.layer.attention.values_are_keys = values_are_keys;
    ExpectSameBitsOf(model);
  }
}

TEST_F(SelectedRowsTest, HaveTheBitsOfAFullRunWithRelativePositions) {
  for (const RelativePositions kind :
       {RelativePositions::kAlibi, RelativePositions::kRotary, RelativePositions::kDisentangled}) {
    ModelDescription model = SmallModel(kLayers, kHeads, 16);
    model.layer.relative_positions = {kind, 8, 30};
    model.layer.relative_positions.scores_queries = true;
    model.layer.relative_positions.scores_keys = true;
    model.layer.relative_positions.rotary.frequencies = RotaryFrequencies(16, 1000);
    ExpectSameBitsOf(model);
  }
}

TEST_F(SelectedRowsTest, HaveTheBitsOfAFullRunWithFurtherNorms) {
  ModelDescription model = SmallModel(kLayers, kHeads, 16);
  model.layer.attention.query_key_norms = QueryKeyNorms::kAllHeads;
  model.layer.extras.has_second_attention_norm = true;
  ExpectSameBitsOf(model);
}

TEST_F(SelectedRowsTest, HaveTheBitsOfAFullRunWithAWindow) {
  for (const int64_t window : {1, 20}) {
    ModelDescription model = SmallModel(kLayers, kHeads, 16);
    model.layer.attention.window = window;
    ExpectSameBitsOf(model);
  }
}

TEST_F(SelectedRowsTest, HaveTheBitsOfAFullRunOfCausalHeadsThatShareKeys) {
  for (const int64_t window : {0, 20}) {
    ModelDescription model = SmallModel(kLayers, kHeads, 16);
    model.layer.attention.key_value_heads = 1;
    model.layer.attention.causal = true;
    model.layer.attention.window = window;
    model.layer.attention.query_key_norms = QueryKeyNorms::kEachHead;
    ExpectSameBitsOf(model);
  }
}

TEST_F(SelectedRowsTest, HaveTheBitsOfAFullRunInABottleneck) {
  for (const bool values_from_outside : {false, true}) {
    ModelDescription model = SmallModel(kLayers, kHeads, 16);
    model.layer.extras.bottleneck.width = 8 * kHeads;
    model.layer.attention.key_width = model.layer.attention.value_width = 8;
    model.layer.extras.bottleneck.values_from_outside = values_from_outside;
    model.layer.feed_forward.blocks = 2;
    ExpectSameBitsOf(model);
  }
}

TEST_F(SelectedRowsTest, HaveTheBitsOfAFullRunOfOtherKinds) {
  for (const AttentionKind kind : {AttentionKind::kAdditive, AttentionKind::kLinear,
                                   AttentionKind::kCausalLinear, AttentionKind::kLinformer}) {
    ModelDescription model = SmallModel(kLayers, kHeads, 16);
    model.layer.attention.kind = kind;
    if (kind == AttentionKind::kLinformer) {
      model.layer.attention.linformer.keys = 20;
      model.layer.attention.linformer.positions = 100;
    }
    model.layer.attention.score_scale = 0.05f;
    ExpectSameBitsOf(model);
  }
}

TEST_F(SelectedRowsTest, HaveTheBitsOfAFullRunInBlocks) {
  ModelDescription model = SmallModel(kLayers, kHeads, 16);
  model.layer.attention.window = 1;
  model.layer.attention.pattern = {
      .block = 4, .first_global = 1, .last_global = 1, .first_repeats = 3};
  ExpectSameBitsOf(model);
}

TEST_F(SelectedRowsTest, HaveTheBitsOfAFullRunAtOddWidths) {
  ModelDescription model = SmallModel(1, 2, 26);
  model.layer.attention.value_width = 9;
  model.layer.feed_forward.width = 0;
  ExpectSameBitsOf(model);
}

TEST_F(SelectedRowsTest, HaveTheBitsOfAFullRunOfAttentionAlone) {
  ModelDescription model = SmallModel(1, kHeads, 16);
  model.layer.norms.placement = NormPlacement::kNone;
  model.layer.feed_forward.width = 0;
  for (const bool projects : {true, false}) {
    model.layer.attention.has_output_projection = projects;
    ExpectSameBitsOf(model);
  }
}

TEST_F(SelectedRowsTest, KeepTheirBiasAndOnlyTheyAreComputed) {
  Load(SmallModel(kLayers, kHeads, 16));
  // Queries 0 and 5 of the fourth sequence have no visible key.
  std::vector<float> values(70 * 70, 0.25f);
  for (size_t i = 0; i < values.size(); i += 3) values[i] = -1.5f;
  for (const int64_t query : {0, 5}) {
    std::fill_n(&values[query * 70], 70, -std::numeric_limits<float>::infinity());
  }
  const AttentionBias bias{values.data(), 0, 70, 1};
  bias_ = {nullptr, nullptr, nullptr, &bias, nullptr, nullptr};
  ExpectSameBits();
  Rows({}, 1, nobody_);
  EXPECT_EQ(fully_masked_rows_, 2 * kHeads * kLayers);
  Rows(Selections().front(), 1, nobody_);
  EXPECT_EQ(fully_masked_rows_, 2 * kHeads * (kLayers - 1) + kHeads);
  Rows(Selections()[1], 1, nobody_);
  EXPECT_EQ(fully_masked_rows_, 2 * kHeads * (kLayers - 1));
}

TEST_F(SelectedRowsTest, SaveProductsOfOtherQueries) {
  Load(SmallModel(1, kHeads, 64), {.gemm = Gemm::kOneDnn});
  const auto products = [&](absl::Span<const int32_t> wanted) {
    EncoderRun run(encoder_, kMaxTokens, 1);
    FillInput(sequences_, run);
    const PackedBatch batch = {.cu_seqlens = cu_seqlens_, .bias = {}, .selected_rows = wanted};
    const OneDnnCounter onednn;
    EXPECT_TRUE(run.Attend(0, AttendStage::kContext, batch, nobody_).ok());
    return onednn.products_run();
  };
  EXPECT_LT(products({7}), products({}));
}

// Takes the probabilities of a layer, and records the last output.
class Witness : public RunObserver {
 public:
  explicit Witness(int64_t layer) : layer_(layer) {}
  float* ProbabilitiesTarget(int64_t layer, int64_t sequence) override {
    if (layer != layer_) return nullptr;
    probabilities[sequence].assign(kHeads * 70 * 70, -1.0f);
    return probabilities[sequence].data();
  }
  void AfterLayer(int64_t, MatrixView<const float> hidden_states) override {
    first_row.assign(hidden_states.row(0), hidden_states.row(0) + hidden_states.cols);
  }

  std::map<int64_t, std::vector<float>> probabilities;
  Sequence first_row;

 private:
  const int64_t layer_;
};

TEST_F(SelectedRowsTest, ProbabilitiesNeedAllRows) {
  Load(SmallModel(kLayers, kHeads, 16));
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    Witness all(layer), wanted(layer);
    const std::vector<Sequence> rows = Rows({}, 2, all);
    EXPECT_TRUE(BitEqual(Rows({0, 30}, 2, wanted)[30], rows[30]));
    EXPECT_EQ(wanted.probabilities, all.probabilities);
    EXPECT_TRUE(BitEqual(wanted.first_row, all.first_row));
  }
}

TEST_F(SelectedRowsTest, MustAscendWithinTheBatch) {
  Load(SmallModel(kLayers, kHeads, 16));
  EncoderRun run(encoder_, kMaxTokens, 1);
  const std::vector<std::vector<int32_t>> refused = {{-1, 2}, {3, 3}, {4, 2}, {0, 131}};
  for (const std::vector<int32_t>& rows : refused) {
    const auto result =
        run.Encode(0, 1, {.cu_seqlens = cu_seqlens_, .bias = {}, .selected_rows = rows}, nobody_);
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(std::string(result.status().message()),
              "selected_rows: expected strictly ascending rows in 0..130");
  }
}

}  // namespace selected_rows_test
}  // namespace attendant::test_support
