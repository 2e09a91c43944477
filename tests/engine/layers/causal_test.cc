// Tests of models whose tokens see those before them: a sequence's beginning does not depend on how
// it goes on, and neither do its bits.
#include <gtest/gtest.h>

#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "tests/support/engine_calls.h"
#include "tests/support/memory_weights.h"

namespace attendant::test_support {
namespace causal_test {

constexpr int64_t kMaxTokens = 1100;

// Like Qwen3: heads that share keys and values, with a norm of each head before rotary positions.
ModelDescription CausalModel(int64_t window) {
  ModelDescription model = SmallModel(3, 6, 16);
  model.layer.attention.key_value_heads = 2;
  model.layer.attention.causal = true;
  model.layer.attention.query_key_norms = QueryKeyNorms::kEachHead;
  model.layer.relative_positions = {.kind = RelativePositions::kRotary,
                                    .rotary = {.frequencies = RotaryFrequencies(16, 1000)}};
  model.layer.feed_forward.has_gate = true;
  model.layer.norms.kind = NormKind::kRms;
  model.layer.norms.placement = NormPlacement::kPre;
  model.has_exit_norm = true;
  if (window == 0) return model;
  model.layer.attention.window = window;
  const RotaryShape& rotary = model.layer.relative_positions.rotary;
  model.variants = {{.has_window = false, .rotary = rotary},
                    {.has_window = true, .rotary = rotary},
                    {.has_window = true, .rotary = rotary}};
  return model;
}

class CausalTest : public ::testing::TestWithParam<ComputeType> {
 protected:
  const ComputeMode mode_ = BestMode(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Types, CausalTest, ::testing::ValuesIn(kComputeTypes),
                         [](const auto& tested) { return Name(tested.param); });

TEST_P(CausalTest, APrefixHasTheBitsOfTheWholeSequence) {
  for (const int64_t window : {0, 20}) {
    const ModelDescription model = CausalModel(window);
    const int64_t width = model.layer.hidden_size;
    MemoryWeights weights = RandomWeights(model, 1);
    const auto encoder = LoadEncoder(model, weights, mode_);
    EncoderRun run(encoder, kMaxTokens, 2);
    const Sequence whole = RandomSequences({600}, width, 1).front();
    for (const int64_t rows_from : {0, 1}) {
      run.SetRowPlan({.rows_from = rows_from});
      const Sequence expected = Encode(run, *encoder, {whole}).front();
      for (const int64_t length : {1, 2, 15, 16, 17, 100, 511, 513}) {
        const Sequence prefix(whole.begin(), whole.begin() + length * width);
        const Sequence start(expected.begin(), expected.begin() + length * width);
        EXPECT_TRUE(BitEqual(Encode(run, *encoder, {prefix}).front(), start))
            << length << " of 600 tokens in a window of " << window;
      }
    }
  }
}

TEST_P(CausalTest, ATokenChangesThoseAfterItAlone) {
  constexpr int64_t kLength = 40, kChanged = 23;
  const ModelDescription model = CausalModel(0);
  const int64_t width = model.layer.hidden_size;
  MemoryWeights weights = RandomWeights(model, 1);
  const auto encoder = LoadEncoder(model, weights, mode_);
  EncoderRun run(encoder, kMaxTokens, 2);
  Sequence sequence = RandomSequences({kLength}, width, 1).front();
  const Sequence before = Encode(run, *encoder, {sequence}).front();
  sequence[kChanged * width] += 1;
  const Sequence after = Encode(run, *encoder, {sequence}).front();
  for (int64_t row = 0; row < kLength; ++row) {
    const auto of = [&](const Sequence& all) {
      return Sequence(all.begin() + row * width, all.begin() + (row + 1) * width);
    };
    EXPECT_EQ(BitEqual(of(before), of(after)), row < kChanged) << row;
  }
}

}  // namespace causal_test
}  // namespace attendant::test_support
