// Tests that sequences that come in parts have the same bits as a whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "engine/base/aligned_buffer.h"
#include "engine/model/model_facts.h"
#include "tests/support/engine_calls.h"
#include "tests/support/memory_weights.h"

namespace attendant::test_support {
namespace sequence_parts_test {

ModelDescription FastModel() {
  ModelDescription model = SmallModel(2, 3, 7);
  model.layer.attention.value_width = 5;
  model.layer.attention.kind = AttentionKind::kCausalLinear;
  model.layer.attention.score_scale = 0.05f;
  model.layer.norms.placement = NormPlacement::kPre;
  model.has_exit_norm = true;
  return model;
}

// The states that the parts so far have left.
class Kept {
 public:
  explicit Kept(const ModelDescription& model)
      : before_(model.layers * LayerStateSize(model.layer)), after_(before_.size()) {}

  LinearState state() { return {begun_ ? before_.data() : nullptr, after_.data()}; }
  void Keep() {
    std::swap(before_, after_);
    begun_ = true;
  }

 private:
  AlignedBuffer<float> before_, after_;
  bool begun_ = false;
};

Sequence Rows(const Sequence& sequence, int64_t width, int64_t first, int64_t count) {
  return {sequence.begin() + first * width, sequence.begin() + (first + count) * width};
}

class SequencePartsTest : public ::testing::TestWithParam<ComputeMode> {
 protected:
  SequencePartsTest()
      : weights_(RandomWeights(model_, 7)),
        encoder_(LoadEncoder(model_, weights_, GetParam())),
        run_(encoder_, 64, 2) {}

  // Computes all layers of a batch of parts, or of sequences without a state.
  std::vector<Sequence> EncodeParts(const std::vector<Sequence>& parts,
                                    const std::vector<LinearState>& states,
                                    const std::vector<int32_t>& wanted = {}) {
    FillInput(parts, run_);
    const std::vector<int32_t> bounds = CumulativeLengths(parts, width_);
    RunObserver nobody;
    const auto result = run_.Encode(
        0, model_.layers,
        {.cu_seqlens = bounds, .bias = {}, .selected_rows = wanted, .states = states}, nobody);
    EXPECT_TRUE(result.ok()) << result.status();
    std::vector<Sequence> outputs;
    for (size_t i = 0; i < parts.size(); ++i) {
      const float* first = result->row(bounds[i]);
      outputs.emplace_back(first, first + parts[i].size());
    }
    return outputs;
  }

  Sequence EncodeInParts(const Sequence& whole, int64_t tokens) {
    Kept kept(model_);
    Sequence output;
    const auto length = static_cast<int64_t>(whole.size()) / width_;
    for (int64_t first = 0; first < length; first += tokens) {
      const int64_t count = std::min(tokens, length - first);
      const Sequence part =
          EncodeParts({Rows(whole, width_, first, count)}, {kept.state()}).front();
      output.insert(output.end(), part.begin(), part.end());
      kept.Keep();
    }
    return output;
  }

  const ModelDescription model_ = FastModel();
  const int64_t width_ = model_.layer.hidden_size;
  MemoryWeights weights_;
  std::shared_ptr<const Encoder> encoder_;
  EncoderRun run_;
};

TEST_P(SequencePartsTest, OfAnySizeGiveTheBitsOfTheWhole) {
  const Sequence whole = RandomSequences({37}, width_, 3).front();
  const Sequence expected = Encode(run_, *encoder_, {whole}).front();
  for (const int64_t tokens : {1, 5, 16, 37}) {
    EXPECT_TRUE(BitEqual(EncodeInParts(whole, tokens), expected)) << tokens;
  }
}

TEST_P(SequencePartsTest, ShareBatchesWithOtherPartsAndSequences) {
  const std::vector<Sequence> wholes = RandomSequences({12, 9, 6}, width_, 5);
  const std::vector<Sequence> expected = Encode(run_, *encoder_, wholes);
  Kept first(model_), second(model_);
  EncodeParts({Rows(wholes[0], width_, 0, 5), Rows(wholes[1], width_, 0, 4)},
              {first.state(), second.state()});
  first.Keep();
  second.Keep();
  const std::vector<Sequence> rest =
      EncodeParts({Rows(wholes[1], width_, 4, 5), wholes[2], Rows(wholes[0], width_, 5, 7)},
                  {second.state(), {}, first.state()});
  EXPECT_TRUE(BitEqual(rest[0], Rows(expected[1], width_, 4, 5)));
  EXPECT_TRUE(BitEqual(rest[1], expected[2]));
  EXPECT_TRUE(BitEqual(rest[2], Rows(expected[0], width_, 5, 7)));
}

TEST_P(SequencePartsTest, WithoutTokensPassOnWhatTheyFind) {
  const Sequence whole = RandomSequences({8}, width_, 4).front();
  const Sequence expected = Encode(run_, *encoder_, {whole}).front();
  Kept kept(model_);
  for (const auto& [first, count] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 0}, {0, 3}, {3, 0}, {3, 5}}) {
    const Sequence part = EncodeParts({Rows(whole, width_, first, count)}, {kept.state()}).front();
    EXPECT_TRUE(BitEqual(part, Rows(expected, width_, first, count)));
    kept.Keep();
  }
}

// A part whose state is not kept has no effect.
TEST_P(SequencePartsTest, LeaveBehindNothingUntilTheyAreKept) {
  const Sequence whole = RandomSequences({8}, width_, 4).front();
  const Sequence expected = Encode(run_, *encoder_, {whole}).front();
  Kept kept(model_);
  EncodeParts({Rows(whole, width_, 0, 3)}, {kept.state()});
  kept.Keep();
  EncodeParts({RandomSequences({4}, width_, 9).front()}, {kept.state()});
  const Sequence part = EncodeParts({Rows(whole, width_, 3, 5)}, {kept.state()}).front();
  EXPECT_TRUE(BitEqual(part, Rows(expected, width_, 3, 5)));
}

// If only the first row of a part is wanted, later parts still read the others.
TEST_P(SequencePartsTest, AreComputedWhole) {
  const Sequence whole = RandomSequences({8}, width_, 4).front();
  const Sequence expected = Encode(run_, *encoder_, {whole}).front();
  Kept kept(model_);
  EncodeParts({Rows(whole, width_, 0, 5)}, {kept.state()}, {0});
  kept.Keep();
  const Sequence part = EncodeParts({Rows(whole, width_, 5, 3)}, {kept.state()}).front();
  EXPECT_TRUE(BitEqual(part, Rows(expected, width_, 5, 3)));
}

INSTANTIATE_TEST_SUITE_P(Modes, SequencePartsTest,
                         ::testing::Values(ComputeMode{}, ComputeMode{ComputeType::kBf16x3, true},
                                           ComputeMode{ComputeType::kBf16, true},
                                           ComputeMode{ComputeType::kInt8, true}),
                         [](const auto& tested) { return Name(tested.param.type); });

// Attend, which computes one layer, takes parts too.
TEST(SequencePartsAttendTest, OneLayerTakesThemToo) {
  const ModelDescription model = FastModel();
  MemoryWeights weights = RandomWeights(model, 7);
  EncoderRun run(LoadEncoder(model, weights), 16, 1);
  const Sequence whole = RandomSequences({6}, 21, 4).front();
  RunObserver nobody;
  const auto attend = [&](const Sequence& rows, const std::vector<LinearState>& states) {
    FillInput({rows}, run);
    const std::vector<int32_t> bounds = {0, static_cast<int32_t>(rows.size() / 21)};
    const auto context = run.Attend(1, AttendStage::kContext,
                                    {.cu_seqlens = bounds, .bias = {}, .states = states}, nobody);
    EXPECT_TRUE(context.ok()) << context.status();
    Sequence values;
    for (int64_t r = 0; r < context->rows; ++r) {
      values.insert(values.end(), context->row(r), context->row(r) + context->cols);
    }
    return values;
  };
  const Sequence expected = attend(whole, {});
  Kept kept(model);
  attend(Rows(whole, 21, 0, 4), {kept.state()});
  kept.Keep();
  EXPECT_TRUE(BitEqual(attend(Rows(whole, 21, 4, 2), {kept.state()}), Rows(expected, 15, 4, 2)));
}

std::string Refusal(const ModelDescription& model, const std::vector<LinearState>& states) {
  MemoryWeights weights = RandomWeights(model, 7);
  EncoderRun run(LoadEncoder(model, weights), 16, 1);
  FillInput({Sequence(2 * model.layer.hidden_size, 0.5f)}, run);
  const std::vector<int32_t> bounds = {0, 2};
  RunObserver nobody;
  const absl::Status status =
      run.Encode(0, model.layers, {.cu_seqlens = bounds, .bias = {}, .states = states}, nobody)
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(SequencePartsRefusalTest, NamesWhatDoesNotGoTokenByToken) {
  ModelDescription model = FastModel();
  EXPECT_EQ(Refusal(model, {{}, {}}), "states: expected 1 (one per sequence); got 2");
  model.layer.relative_positions.kind = RelativePositions::kRotary;
  model.layer.relative_positions.rotary.frequencies = RotaryFrequencies(4, 100);
  EXPECT_EQ(Refusal(model, {{}}),
            "states: not supported by this model: its rotary positions depend on the whole "
            "sequence");
  model = FastModel();
  model.layer.attention.kind = AttentionKind::kLinear;
  EXPECT_EQ(Refusal(model, {{}}),
            "states: not supported by this model: its attention is linear, not causal_linear");
}

TEST(WhyNotInChunksTest, LooksAtWhatComesBeforeTheLayersToo) {
  ModelDescription model = FastModel();
  EXPECT_EQ(WhyNotInChunks(model), "");
  model.patch_embedding = {.has_class = true};
  EXPECT_EQ(WhyNotInChunks(model), "it adds prefix tokens or grid positions to the whole sequence");
  model.patch_embedding = {.feature_width = 3, .positions = 9};
  EXPECT_EQ(WhyNotInChunks(model), "");
  model.patch_embedding.reset();
  model.embeddings = EmbeddingShape{.has_neighbours = true};
  EXPECT_EQ(WhyNotInChunks(model), "its embeddings read neighboring tokens");
  model.embeddings = EmbeddingShape{.mask_id = 3};
  EXPECT_EQ(WhyNotInChunks(model), "its embeddings count the mask tokens of the whole sequence");
  model.layer.extras.convolution.taps = 3;
  EXPECT_EQ(WhyNotInChunks(model), "its convolutions read neighboring tokens");
}

}  // namespace sequence_parts_test
}  // namespace attendant::test_support
