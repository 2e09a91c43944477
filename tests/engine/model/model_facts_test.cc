#include "engine/model/model_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/layers/encoder.h"
#include "tests/engine/checkpoint/tiny_families.h"
#include "tests/support/engine_calls.h"

namespace attendant::test_support {
namespace model_facts_test {

using ::testing::ElementsAre;

ModelDescription Synthetic(const std::string& name) {
  return OpenCheckpoint("synthetic:" + name, {})->description;
}

std::string Show(const WeightUse& use) {
  return absl::StrCat(use.weight.name, " ", Name(use.form), use.linear.empty() ? "" : " of ",
                      use.linear, use.linear.empty() ? "" : absl::StrCat(" from ", use.first_row));
}

std::string Show(const StageCost& cost) {
  return absl::StrCat(cost.stage, " ", cost.per_token, " ", cost.per_pair, " ", cost.per_sequence);
}

template <typename T>
std::vector<std::string> ShowAll(const std::vector<T>& items) {
  std::vector<std::string> lines;
  for (const T& item : items) lines.push_back(Show(item));
  return lines;
}

// A model of one layer: E 4, H 2, Dk 2, Dv 3, F 8.
ModelDescription Everything() {
  ModelDescription model;
  model.layers = 1;
  model.layer.hidden_size = 4;
  model.layer.attention.heads = 2;
  model.layer.attention.key_width = 2;
  model.layer.attention.value_width = 3;
  model.layer.feed_forward.width = 8;
  model.layer.feed_forward.has_gate = true;
  model.layer.extras.has_branch_scale = true;
  model.layer.norms.kind = NormKind::kRms;
  model.embeddings.emplace();
  model.embeddings->width = 3;
  model.embeddings->vocabulary = 10;
  model.pooling = PoolingDescription{
      .modes = {PoolingMode::kMean}, .dense_width = 5, .dense_activation = Activation::kTanh};
  return model;
}

TEST(ListWeightUsesTest, NamesWhatEachWeightIsPackedInto) {
  EXPECT_THAT(
      ShowAll(ListWeightUses(Everything())),
      ElementsAre("embeddings.word table", "embeddings.norm.weight norm",
                  "embeddings.projection.weight linear of embeddings.projection from 0",
                  "embeddings.projection.bias bias of embeddings.projection from 0",
                  "layer.0.query.weight linear of layer.0.qkv from 0",
                  "layer.0.query.bias bias of layer.0.qkv from 0",
                  "layer.0.key.weight linear of layer.0.qkv from 4",
                  "layer.0.key.bias bias of layer.0.qkv from 4",
                  "layer.0.value.weight linear of layer.0.qkv from 8",
                  "layer.0.value.bias bias of layer.0.qkv from 8",
                  "layer.0.output.weight linear of layer.0.output from 0",
                  "layer.0.output.bias bias of layer.0.output from 0",
                  "layer.0.attention_scale scale of layer.0.output from 0",
                  "layer.0.attention_norm.weight norm",
                  "layer.0.feed_forward_gate.weight linear of layer.0.feed_forward_gate from 0",
                  "layer.0.feed_forward_gate.bias bias of layer.0.feed_forward_gate from 0",
                  "layer.0.feed_forward_in.weight linear of layer.0.feed_forward_in from 0",
                  "layer.0.feed_forward_in.bias bias of layer.0.feed_forward_in from 0",
                  "layer.0.feed_forward_out.weight linear of layer.0.feed_forward_out from 0",
                  "layer.0.feed_forward_out.bias bias of layer.0.feed_forward_out from 0",
                  "layer.0.feed_forward_scale scale of layer.0.feed_forward_out from 0",
                  "layer.0.feed_forward_norm.weight norm", "pooling.dense.weight table",
                  "pooling.dense.bias table"));
}

TEST(ListStageCostsTest, CountsTwoOperationsForEachElementOfAMatrix) {
  EXPECT_THAT(
      ShowAll(ListStageCosts(Everything())),
      ElementsAre("embeddings.projection 24 0 0", "attention.qkv 112 0 0", "attention.scores 0 8 0",
                  "attention.context 0 12 0", "attention.output 48 0 0", "feed_forward.gate 64 0 0",
                  "feed_forward.in 64 0 0", "feed_forward.out 64 0 0", "pooling.dense 0 0 40"));
}

// A token goes through the router and 2 of 5 experts in one layer, and through the whole block in
// the other one.
TEST(ListStageCostsTest, CountsTheExpertsThatATokenGoesThrough) {
  ModelDescription model = SmallModel(2, 2, 8);  // E 16
  model.layer.feed_forward.width = 20;
  model.layer.feed_forward.has_gate = true;
  model.layer.feed_forward.mixture = {5, 2};
  model.SplitShapes();
  model.layer_shapes[0].feed_forward.mixture = {};
  std::map<std::string, StageCost> costs;
  for (const StageCost& cost : ListStageCosts(model)) costs[cost.stage] = cost;
  EXPECT_EQ(Show(costs["feed_forward.router"]), "feed_forward.router 160 0 0");
  for (const std::string stage : {"feed_forward.gate", "feed_forward.in", "feed_forward.out"}) {
    EXPECT_EQ(costs[stage].per_token, 2 * 16 * 20 * (1 + 2)) << stage;
  }
  EXPECT_EQ(CostOfLayer(model, 1).others.per_token, 160 + 2 * 3 * 2 * 16 * 20);
}

// Layers that share their weights cost as much as other layers.
TEST(ListStageCostsTest, CountsLayersNotWeightSets) {
  ModelDescription model = SmallModel(4, 2, 8);
  const auto own = ShowAll(ListStageCosts(model));
  model.layer_map = {0, 0, 1, 1};
  EXPECT_EQ(ShowAll(ListStageCosts(model)), own);
}

TEST(ListStageCostsTest, CountsWindowsByTheToken) {
  ModelDescription model = SmallModel(3, 2, 8);
  model.layer.attention.window = 4;
  model.SplitShapes();
  model.layer_shapes[0].attention.window = 0;
  for (const StageCost& cost : ListStageCosts(model)) {
    if (cost.stage != "attention.scores" && cost.stage != "attention.context") continue;
    EXPECT_EQ(cost.per_pair, 2 * 2 * 8);
    EXPECT_EQ(cost.per_token, 2 * 9 * 2 * 2 * 8);
  }
}

TEST(ListStageCostsTest, CountsTheKeysThatACausalQuerySees) {
  ModelDescription model = SmallModel(1, 2, 8);
  model.layer.attention.key_value_heads = 1;
  model.layer.attention.causal = true;
  const auto cost_of = [&](int64_t length) {
    int64_t flops = 0;
    for (const StageCost& cost : ListStageCosts(model)) {
      if (cost.stage != "attention.scores") continue;
      flops = cost.per_token * length + cost.per_pair * length * length;
    }
    return flops;
  };
  EXPECT_EQ(cost_of(10), (10 + 9 + 8 + 7 + 6 + 5 + 4 + 3 + 2 + 1) * 2 * 2 * 8);
  model.layer.attention.window = 4;
  EXPECT_EQ(cost_of(10), 10 * 5 * 2 * 2 * 8);
}

TEST(ListStageCostsTest, CountsLinearAttentionByTheToken) {
  for (const AttentionKind kind : {AttentionKind::kLinear, AttentionKind::kCausalLinear}) {
    ModelDescription model = SmallModel(3, 2, 8);
    model.layer.attention.kind = kind;
    int64_t state = 0;
    for (const StageCost& cost : ListStageCosts(model)) {
      EXPECT_EQ(cost.per_pair, 0) << cost.stage;
      EXPECT_NE(cost.stage, "attention.scores");
      if (cost.stage == "attention.state") state = cost.per_token;
    }
    EXPECT_EQ(state, 3 * 2 * 2 * 2 * 8 * 8);
  }
}

TEST(ListStageCostsTest, CountsLinformerByTheToken) {
  ModelDescription model = SmallModel(3, 2, 8);
  model.layer.attention.kind = AttentionKind::kLinformer;
  model.layer.attention.linformer.keys = 5;
  model.layer.attention.linformer.positions = 16;
  for (const StageCost& cost : ListStageCosts(model)) {
    EXPECT_EQ(cost.per_pair, 0) << cost.stage;
    if (cost.stage == "attention.mixing") {
      EXPECT_EQ(cost.per_token, 3 * 2 * 2 * (8 + 8) * 5);
    } else if (cost.stage == "attention.scores" || cost.stage == "attention.context") {
      EXPECT_EQ(cost.per_token, 3 * 2 * 2 * 8 * 5);
    }
  }
}

TEST(ListStageCostsTest, CountsBlocksAndGlobalOnes) {
  ModelDescription model = SmallModel(1, 2, 8);
  model.layer.attention.window = 1;
  model.layer.attention.pattern = {.block = 64, .first_global = 1, .last_global = 1};
  for (const StageCost& cost : ListStageCosts(model)) {
    if (cost.stage != "attention.scores" && cost.stage != "attention.context") continue;
    EXPECT_EQ(cost.per_pair, 0);
    EXPECT_EQ(cost.per_token, 5 * 64 * 2 * 2 * 8);
  }
}

TEST(ListStageCostsTest, CountsListedPairsByTheSequence) {
  ModelDescription model = SmallModel(3, 2, 8);
  model.layer.attention.window = 1;
  model.layer.attention.pattern = {.block = 16, .listed = BlockLists({{2, 7}, {3, 0}}, {5})};
  for (const StageCost& cost : ListStageCosts(model)) {
    if (cost.stage != "attention.scores" && cost.stage != "attention.context") continue;
    EXPECT_EQ(cost.per_pair, 0);
    EXPECT_EQ(cost.per_token, 3 * 4 * 16 * 2 * 2 * 8);
    EXPECT_EQ(cost.per_sequence, 3 * 2 * 16 * 16 * 2 * 2 * 8);
  }
}

TEST(ListStageCostsTest, CountsTheRowsOfDistances) {
  ModelDescription model = SmallModel(3, 2, 8);
  model.layer.relative_positions = {RelativePositions::kDisentangled, 16, 50};
  model.layer.relative_positions.scores_queries = true;
  model.layer.relative_positions.scores_keys = true;
  int64_t per_token = 0;
  for (const StageCost& cost : ListStageCosts(model)) {
    EXPECT_NE(cost.stage, "position_key");  // it is projected while loading
    if (cost.stage == "attention.distances") per_token = cost.per_token;
  }
  EXPECT_EQ(per_token, 3 * 2 * 2 * 32 * 2 * 8);
}

// A layer costs 8 n E^2 + 4 n^2 E + 4 n E F; the shares for bert-base follow from that.
TEST(CostOfLayerTest, HasEveryOperationOfTheLayersInOnePart) {
  ModelDescription model = SmallModel(3, 2, 8);
  model.layer.attention.window = 4;
  model.SplitShapes();
  model.layer_shapes[0].attention.window = 0;
  StageCost all, parts;
  const auto add = [](const StageCost& cost, StageCost& sum) {
    sum.per_token += cost.per_token;
    sum.per_pair += cost.per_pair;
  };
  for (const StageCost& cost : ListStageCosts(model)) add(cost, all);
  for (int64_t layer = 0; layer < 3; ++layer) {
    const LayerCost cost = CostOfLayer(model, layer);
    EXPECT_EQ(cost.attention.per_pair == 0, layer > 0);
    EXPECT_EQ(cost.inputs.per_token, 3 * cost.output.per_token);
    EXPECT_EQ(cost.inputs.per_pair + cost.output.per_pair + cost.others.per_pair, 0);
    for (const StageCost& part : {cost.inputs, cost.attention, cost.output, cost.others}) {
      add(part, parts);
    }
  }
  EXPECT_EQ(Show(parts), Show(all));
}

TEST(ListStageCostsTest, IsTheKnownCostOfALayer) {
  int64_t per_token = 0, per_pair = 0;
  for (const StageCost& cost : ListStageCosts(Synthetic("bert-base"))) {
    per_token += cost.per_token;
    per_pair += cost.per_pair;
  }
  EXPECT_EQ(per_token, 12 * (8 * 768 * 768 + 4 * 768 * 3072));
  EXPECT_EQ(per_pair, 12 * 4 * 768);
  const std::map<int64_t, double> attention_percent = {
      {64, 1.4}, {128, 2.7}, {512, 10.0}, {1024, 18.2}, {8192, 64.0}};
  for (const auto& [n, percent] : attention_percent) {
    const auto length = static_cast<double>(n);
    const double attention = static_cast<double>(per_pair) * length;
    EXPECT_NEAR(100 * attention / (attention + static_cast<double>(per_token)), percent, 0.06);
  }
}

TEST(PredictWeightBytesTest, BoundsWhatIsKeptAndShrinksWithTheType) {
  const ModelDescription model = Synthetic("minilm-l6");
  const absl::StatusOr<Checkpoint> checkpoint = OpenCheckpoint("synthetic:minilm-l6", {});
  const int64_t kept = LoadEncoder(model, *checkpoint->weights)->weight_bytes();
  const int64_t f32 = *PredictWeightBytes(model, {});
  EXPECT_GE(f32, kept);
  EXPECT_LE(static_cast<double>(f32), 1.02 * static_cast<double>(kept));
  const int64_t bf16 = *PredictWeightBytes(model, {.type = ComputeType::kBf16});
  const int64_t int8 = *PredictWeightBytes(model, {.type = ComputeType::kInt8});
  EXPECT_LT(bf16, f32);
  EXPECT_LT(int8, bf16);
  EXPECT_EQ(*PredictWeightBytes(model, {.type = ComputeType::kBf16x3}), f32);
  EXPECT_EQ(*PredictWeightBytes(model, {.type = ComputeType::kInt8, .emulate = true}), f32);
}

TEST(PredictWeightBytesTest, FollowsTheTypeOfTheFileAndTheSetting) {
  ModelDescription model = Synthetic("minilm-l6");
  const int64_t f32 = *PredictWeightBytes(model, {});
  const int64_t bf16 = *PredictWeightBytes(model, {.type = ComputeType::kBf16});
  for (const WeightType type : {WeightType::kBf16, WeightType::kF16}) {
    EXPECT_EQ(*PredictWeightBytes(model, {.weights = type}), bf16);
  }
  model.linear_type = DataType::kBFloat16;
  EXPECT_EQ(*PredictWeightBytes(model, {}), bf16);
  EXPECT_EQ(*PredictWeightBytes(model, {.weights = WeightType::kF32}), f32);
  EXPECT_EQ(*PredictWeightBytes(model, {.gemm = Gemm::kOneDnn}), f32);
  EXPECT_EQ(*PredictWeightBytes(model, {.type = ComputeType::kInt8, .emulate = true}), f32);
}

TEST(PredictWeightBytesTest, RefusesWhatCannotBe) {
  ModelDescription model = SmallModel(1, 2, 8);
  model.layer.attention.heads = 0;
  EXPECT_EQ(PredictWeightBytes(model, {}).status(), Encoder::PredictLoadBytes(model).status());
}

class TinyFamilyFactsTest : public ::testing::TestWithParam<TinyFamily> {};

TEST_P(TinyFamilyFactsTest, AccountForEveryWeight) {
  const TempFolder folder;
  WriteFamily(folder, GetParam());
  const absl::StatusOr<Checkpoint> checkpoint = OpenCheckpoint(folder.path(), {});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  std::map<std::string, int64_t> rows;  // rows of each linear layer
  for (const WeightUse& use : ListWeightUses(checkpoint->description)) {
    const bool is_linear = use.form == WeightForm::kLinear;
    EXPECT_EQ(use.linear.empty(), use.form == WeightForm::kNorm || use.form == WeightForm::kTable);
    if (!is_linear) continue;
    EXPECT_EQ(use.first_row, rows[use.linear]) << use.weight.name;
    rows[use.linear] += use.weight.shape[0];
  }
  EXPECT_FALSE(rows.empty());
  EXPECT_FALSE(ListStageCosts(checkpoint->description).empty());
}

INSTANTIATE_TEST_SUITE_P(Tiny, TinyFamilyFactsTest, ::testing::ValuesIn(TinyFamilies()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace model_facts_test
}  // namespace attendant::test_support
