// Tests of norms that pack the input of the next product along with their rows: the bits are
// those of a norm followed by a product that packs its input.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/kernels/norm/norm.h"
#include "engine/layers/feed_forward.h"
#include "engine/layers/multi_head_attention.h"
#include "engine/layers/state/layer_run.h"
#include "engine/model/residual_blocks.h"
#include "engine/model/weight_source.h"
#include "tests/support/engine_calls.h"
#include "tests/support/memory_weights.h"
#include "tests/support/random_values.h"

namespace attendant::test_support {
namespace fused_norm_test {

// More tokens than a feed-forward block takes at once, and not a multiple of a tile.
constexpr int64_t kMaxTokens = 1300;
const std::vector<int64_t> kLong(21, 61);

struct Kind {
  std::string name;
  std::function<void(LayerShape&)> give;
};

std::vector<Kind> PlainKinds() {
  const auto pre = [](LayerShape& layer) { layer.norms.placement = NormPlacement::kPre; };
  const auto rms = [](LayerShape& layer) {
    layer.norms.kind = NormKind::kRms;
    layer.feed_forward.has_gate = true;
  };
  return {{"Post", [](LayerShape&) {}},
          {"Pre", pre},
          {"PostRmsGate", rms},
          {"PreRmsGate", [=](LayerShape& layer) {
             pre(layer);
             rms(layer);
           }}};
}

std::vector<Kind> AllKinds() {
  std::vector<Kind> kinds = PlainKinds();
  kinds.push_back(
      {"SecondNorm", [](LayerShape& layer) { layer.extras.has_second_attention_norm = true; }});
  kinds.push_back(
      {"Sandwich", [](LayerShape& layer) { layer.norms.placement = NormPlacement::kSandwich; }});
  kinds.push_back({"Convolution", [](LayerShape& layer) { layer.extras.convolution = {3, 2}; }});
  for (const bool outside : {false, true}) {
    kinds.push_back({outside ? "BottleneckAndOutside" : "Bottleneck", [=](LayerShape& layer) {
                       layer.extras.bottleneck.width = 24;
                       layer.attention.key_width = layer.attention.value_width = 8;
                       layer.extras.bottleneck.values_from_outside = outside;
                       layer.feed_forward.blocks = 2;
                     }});
  }
  kinds.push_back({"AttentionAlone", [](LayerShape& layer) { layer.feed_forward.width = 0; }});
  kinds.push_back({"NoNorm", [](LayerShape& layer) {
                     layer.norms.placement = NormPlacement::kNone;
                     layer.feed_forward.width = 0;
                   }});
  return kinds;
}

std::string NameOf(const Kind& kind, ComputeType type) { return kind.name + "_" + Name(type); }

class FusedNormTest : public ::testing::TestWithParam<std::tuple<Kind, ComputeType>> {
 protected:
  static ModelDescription Model(const Kind& kind) {
    ModelDescription model = SmallModel(3, 3, 16);
    kind.give(model.layer);
    return model;
  }

  // Runs under every way to divide the work.
  void ExpectEverywhere(const std::vector<Sequence>& sequences,
                        const std::vector<Sequence>& expected) {
    for (const int threads : {1, 2}) {
      EncoderRun run(encoder_, kMaxTokens, threads);
      for (const int64_t rows_from : {0, 1}) {
        run.SetRowPlan({.rows_from = rows_from});
        const std::vector<Sequence> outputs = Encode(run, *encoder_, sequences);
        ASSERT_EQ(outputs.size(), expected.size());
        for (size_t i = 0; i < outputs.size(); ++i) {
          ASSERT_TRUE(BitEqual(outputs[i], expected[i]))
              << "sequence " << i << ", " << threads << " threads, rows from " << rows_from;
        }
      }
    }
  }

  const ModelDescription model_ = Model(std::get<Kind>(GetParam()));
  const ComputeMode mode_ = BestMode(std::get<ComputeType>(GetParam()));
  MemoryWeights weights_ = RandomWeights(model_, 1);
  const std::shared_ptr<const Encoder> encoder_ = LoadEncoder(model_, weights_, mode_);
};

// A layer as in the paper, one step at a time.
class PlainLayer {
 public:
  PlainLayer(const std::string& prefix, const LayerShape& shape, WeightLoader& loader)
      : is_pre_(shape.norms.placement == NormPlacement::kPre),
        attention_(prefix, shape, loader),
        attention_norm_(ReadNorm(prefix + "attention_norm", shape, loader)),
        feed_forward_(FeedForwardPrefix(prefix, shape, 0), shape, loader),
        feed_forward_norm_(
            ReadNorm(FeedForwardPrefix(prefix, shape, 0) + "feed_forward_norm", shape, loader)) {}

  void Forward(MatrixView<float> x, const LayerRun& run) const {
    Add(x, attention_norm_, run, [&](MatrixView<float> entry) {
      return attention_.Project(attention_.Context(entry, run), run);
    });
    Add(x, feed_forward_norm_, run,
        [&](MatrixView<float> entry) { return feed_forward_.Forward(entry, run); });
  }

 private:
  static NormParameters ReadNorm(const std::string& name, const LayerShape& shape,
                                 WeightLoader& loader) {
    return loader.ReadNorm(name, shape.hidden_size, shape.norms.kind, shape.norms.epsilon);
  }

  // Computes x = norm(x + branch(x)), or x + branch(norm(x)).
  template <class Branch>
  void Add(MatrixView<float> x, const NormParameters& norm, const LayerRun& run,
           const Branch& branch) const {
    if (!is_pre_) return AddLayerNorm(run.workspace.team, x, branch(x), norm.view(), x);
    const MatrixView<float> normed = run.Kept(run.workspace.activations.branch());
    LayerNorm(run.workspace.team, x, norm.view(), normed);
    attendant::Add(run.workspace.team, x, branch(normed), x);
  }

  bool is_pre_;
  MultiHeadAttention attention_;
  NormParameters attention_norm_;
  FeedForward feed_forward_;
  NormParameters feed_forward_norm_;
};

class FusedLayersTest : public FusedNormTest {
 protected:
  std::vector<Sequence> StepByStep(const std::vector<Sequence>& sequences) {
    WeightLoader loader(
        weights_, 0, [](int64_t, int64_t) {}, mode_);
    Workspace workspace(model_, kMaxTokens, 1, mode_);
    const PositionTables tables(model_, kMaxTokens);
    BatchRun batch_run(model_, workspace, tables);
    std::vector<PlainLayer> layers;
    for (int64_t i = 0; i < model_.layers; ++i) {
      layers.emplace_back(absl::StrCat("layer.", i, "."), model_.layer, loader);
    }
    workspace.Reserve(loader.product_uses());
    workspace.norms = loader.norms();
    const int64_t width = model_.layer.hidden_size;
    const std::vector<int32_t> bounds = CumulativeLengths(sequences, width);
    const PackedBatch batch = {.cu_seqlens = bounds, .bias = {}};
    RunObserver nobody;
    EXPECT_TRUE(batch_run.Begin(batch, 0, nobody).ok());
    const MatrixView<float> x = workspace.activations.hidden().Rows(0, batch.tokens());
    float* row = x.data;
    for (const Sequence& sequence : sequences) {
      row = std::copy(sequence.begin(), sequence.end(), row);
    }
    for (int64_t i = 0; i < model_.layers; ++i) {
      layers[i].Forward(x, batch_run.Layer(i, i + 1 == model_.layers));
    }
    std::vector<Sequence> outputs;
    for (size_t i = 0; i + 1 < bounds.size(); ++i) {
      outputs.emplace_back(x.row(bounds[i]), x.row(bounds[i + 1]));
    }
    return outputs;
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, FusedLayersTest,
                         ::testing::Combine(::testing::ValuesIn(PlainKinds()),
                                            ::testing::ValuesIn(kComputeTypes)),
                         [](const auto& tested) { return std::apply(NameOf, tested.param); });

TEST_P(FusedLayersTest, HaveTheBitsOfOneStepAfterTheOther) {
  for (const std::vector<int64_t>& lengths : {kLong, {1}, {30, 2, 7}}) {
    const std::vector<Sequence> sequences = RandomSequences(lengths, model_.layer.hidden_size, 1);
    ExpectEverywhere(sequences, StepByStep(sequences));
  }
}

// All rows are packed, although the block takes some of them at a time; only kF32 then
// reads the rows themselves.
TEST_P(FusedLayersTest, FeedForwardTakesPackedRows) {
  if (mode_.type == ComputeType::kF32) return;
  WeightLoader loader(
      weights_, 0, [](int64_t, int64_t) {}, mode_);
  const FeedForward block(FeedForwardPrefix("layer.0.", model_.layer, 0), model_.layer, loader);
  Workspace workspace(model_, kMaxTokens, 2, mode_);
  workspace.Reserve(loader.product_uses());
  const PositionTables tables(model_, kMaxTokens);
  const LayerRun run = {.workspace = workspace, .tables = tables, .tokens = kMaxTokens};
  const int64_t width = model_.layer.hidden_size;
  const std::vector<float> values = RandomValues(PaddedRows(kMaxTokens) * width, 1);
  const std::vector<float> nothing(values.size(), std::numeric_limits<float>::quiet_NaN());
  const auto output = [&](const LinearInput& x) {
    const MatrixView<float> y = block.Forward(x, run);
    return Sequence(y.data, y.data + y.rows * width);
  };
  const Sequence expected = output(ViewOf(values, kMaxTokens, width));
  const PackedInput packed = run.Prepare(width);
  for (int64_t r = 0; r < kMaxTokens; ++r) {
    packed.WriteRows(0, r, {&values[r * width], 1, width, width});
  }
  EXPECT_TRUE(BitEqual(output({ViewOf(nothing, kMaxTokens, width), packed}), expected));
}

class FusedSpanTest : public FusedNormTest {};

INSTANTIATE_TEST_SUITE_P(Kinds, FusedSpanTest,
                         ::testing::Combine(::testing::ValuesIn(AllKinds()),
                                            ::testing::ValuesIn(kComputeTypes)),
                         [](const auto& tested) { return std::apply(NameOf, tested.param); });

// The last norm of a layer packs the input that the next layer reads.
TEST_P(FusedSpanTest, HasTheBitsOfOneLayerAfterTheOther) {
  for (const std::vector<int64_t>& lengths : {kLong, {30, 2, 7}}) {
    const std::vector<Sequence> sequences = RandomSequences(lengths, model_.layer.hidden_size, 1);
    std::vector<Sequence> expected = sequences;
    EncoderRun run(encoder_, kMaxTokens, 1);
    for (int64_t layer = 0; layer < model_.layers; ++layer) {
      expected = Encode(run, expected, layer, 1);
    }
    ExpectEverywhere(sequences, expected);
  }
}

}  // namespace fused_norm_test
}  // namespace attendant::test_support
