#include "engine/model/layer_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "engine/base/rounding.h"
#include "engine/base/shape.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/layers/encoder.h"
#include "engine/model/check_description.h"
#include "engine/model/load_plan.h"
#include "engine/model/model_facts.h"
#include "engine/model/weight_source.h"
#include "tests/engine/checkpoint/tiny_families.h"
#include "tests/support/compute_modes.h"
#include "tests/support/engine_calls.h"
#include "tests/support/memory_weights.h"

namespace attendant::test_support {
namespace layer_parts_test {

using ::testing::ElementsAreArray;

std::vector<std::string> NamesOf(const std::vector<ModelPart>& parts) {
  std::vector<std::string> names;
  for (const ModelPart& part : parts) {
    for (const WeightSpec& weight : WeightsOf(part)) names.push_back(weight.name);
  }
  return names;
}

int64_t ElementsOf(const ModelPart& part) {
  int64_t sum = 0;
  for (const WeightSpec& weight : WeightsOf(part)) sum += *ElementCount(weight.shape);
  return sum;
}

// Returns a description with every kind of part, in sizes that are whole blocks of packed weights
// and their panels.
ModelDescription EveryKindOfPart() {
  constexpr int64_t kWidth = 384;
  ModelDescription model = SmallModel(2, 6, 64);
  model.layer.feed_forward.width = 2 * kWidth;
  model.layer.feed_forward.has_gate = true;
  model.layer.extras.has_branch_scale = true;
  model.layer.attention.query_key_norms = QueryKeyNorms::kAllHeads;
  model.layer.extras.has_second_attention_norm = true;
  model.layer.attention.kind = AttentionKind::kAdditive;
  model.layer.relative_positions = {RelativePositions::kBuckets, 8, 10};
  model.layer.extras.convolution = {.taps = 3, .groups = 2};
  model.embeddings = {.width = kWidth / 2, .vocabulary = 20, .positions = 10, .token_types = 2};
  model.patch_embedding = {.has_class = true, .registers = 3, .positions = 6, .has_norm = true};
  model.has_exit_norm = true;
  model.pooling = {.modes = {PoolingMode::kMean},
                   .dense_width = 5,
                   .further_dense = {{4, Activation::kTanh}, {6}}};
  model.classifier = {.modes = {PoolingMode::kFirstToken},
                      .dense_width = 7,
                      .has_dense_norm = true,
                      .output_width = 3};
  return model;
}

// The weights and biases of linear layers, and what is kept for each column in float32.
int64_t KeptBytes(const ModelPart& part) {
  constexpr int64_t kColumnBytes = 5 * sizeof(float);
  const auto floats = static_cast<int64_t>(sizeof(float)) * ElementsOf(part);
  if (part.kind == PartKind::kScale) return 0;
  if (part.kind == PartKind::kDense) {  // packed like the others, but narrower than a block
    const int64_t columns = RoundUp(part.out.value(), 192), rows = RoundUp(part.in.value(), 64);
    return columns * (rows * static_cast<int64_t>(sizeof(float)) + kColumnBytes);
  }
  if (part.kind != PartKind::kLinear) return floats;
  const int64_t columns = part.groups * part.out.value();
  return floats + columns * (kColumnBytes - static_cast<int64_t>(sizeof(float)));
}

TEST(LayerPartsTest, AddUpToTheBytesOfTheModel) {
  const ModelDescription model = EveryKindOfPart();
  ASSERT_TRUE(CheckDescription(model).ok()) << CheckDescription(model);
  int64_t kept = 0, largest = 0;
  std::set<PartKind> kinds;
  for (const ModelPart& part : ListParts(model)) {
    kinds.insert(part.kind);
    kept += KeptBytes(part);
    if (part.kind == PartKind::kLinear) {
      largest = std::max(largest, static_cast<int64_t>(sizeof(float)) * ElementsOf(part));
    }
  }
  EXPECT_EQ(kinds.size(), 6);  // all but those of distances
  EXPECT_EQ(PackedBytes(model, {}).value(), kept);
  EXPECT_GE(LoadBytes(model, {}).value(), kept + 2 * largest);
}

// Tables of words and positions are read to where they stay.
TEST(LayerPartsTest, CountTablesOnceWhileTheyAreLoaded) {
  ModelDescription model = SmallModel(2, 2, 8);
  const int64_t without = LoadBytes(model, {}).value();
  const int64_t width = model.layer.hidden_size;
  model.embeddings = EmbeddingShape{.width = width, .vocabulary = 1'000'000, .positions = 2'000};
  model.embeddings->has_norm = false;
  EXPECT_EQ(LoadBytes(model, {}).value(), without + 1'002'000 * width * int64_t{sizeof(float)});
  model.embeddings->table_type = DataType::kBFloat16;
  EXPECT_EQ(LoadBytes(model, {}).value(), without + 1'002'000 * width * 2);
  EXPECT_EQ(ListWeightUses(model).front().type, DataType::kBFloat16);
}

TEST(LayerPartsTest, HaveFourNormsInASandwich) {
  LayerShape shape = SmallModel(1, 2, 8).layer;
  shape.norms.placement = NormPlacement::kSandwich;
  shape.norms.kind = NormKind::kRms;
  std::vector<std::string> norms;
  for (const ModelPart& part : ListParts(shape)) {
    if (part.kind == PartKind::kNorm) norms.push_back(part.name);
  }
  EXPECT_THAT(norms, ::testing::ElementsAre("attention_norm", "attention_branch_norm",
                                            "feed_forward_norm", "feed_forward_branch_norm"));
}

TEST(LayerPartsTest, NameWhatEachIsPackedInto) {
  LayerShape shape = SmallModel(1, 2, 8).layer;
  const std::vector<ModelPart> fused = InputProjections(shape);
  ASSERT_EQ(fused.size(), 3);
  EXPECT_EQ(fused[1].linear, "qkv");
  EXPECT_EQ(fused[1].first_row.value(), shape.key_column());
  EXPECT_EQ(fused[2].first_row.value(), shape.value_column());
  EXPECT_TRUE(ArePackedAsOne(fused[0], fused[2]));
  shape.attention.value_input_width = 5;
  const std::vector<ModelPart> alone = InputProjections(shape);
  EXPECT_EQ(alone[2].linear, "value");
  EXPECT_EQ(alone[2].stage, "attention.value");
  EXPECT_FALSE(ArePackedAsOne(alone[0], alone[1]));
}

class TinyFamilyPartsTest : public ::testing::TestWithParam<TinyFamily> {
 protected:
  void SetUp() override {
    const TempFolder folder;
    WriteFamily(folder, GetParam());
    absl::StatusOr<Checkpoint> checkpoint = OpenCheckpoint(folder.path(), {});
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    model_ = checkpoint->description;
  }

  ModelDescription model_;
};

TEST_P(TinyFamilyPartsTest, HoldEachWeightOnceInTheOrderOfLoading) {
  const std::vector<std::string> names = NamesOf(ListParts(model_));
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  std::vector<std::string> listed;
  for (const WeightSpec& weight : ListWeights(model_)) listed.push_back(weight.name);
  EXPECT_THAT(names, ElementsAreArray(listed));
  MemoryWeights weights = RandomWeights(model_, 1);
  LoadEncoder(model_, weights);
  EXPECT_THAT(weights.reads(), ElementsAreArray(names));
}

TEST_P(TinyFamilyPartsTest, BoundTheBytesThatAreKept) {
  for (const ComputeType type : kComputeTypes) {
    const ComputeMode mode = BestMode(type);
    MemoryWeights weights = RandomWeights(model_, 1);
    EXPECT_LE(LoadEncoder(model_, weights, mode)->weight_bytes(),
              PackedBytes(model_, mode).value());
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, TinyFamilyPartsTest, ::testing::ValuesIn(TinyFamilies()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace layer_parts_test
}  // namespace attendant::test_support
