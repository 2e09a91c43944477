#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/kernels/convert.h"
#include "engine/kernels/gemm/compute_support.h"
#include "engine/layers/encoder.h"
#include "engine/layers/state/weight_loader.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/engine_calls.h"
#include "tests/support/memory_weights.h"

namespace attendant::test_support {
namespace encoder_load_test {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr int64_t kHuge = int64_t{1} << 40;

void IgnoreProgress(int64_t, int64_t) {}

// Returns a description with everything that a model can have.
ModelDescription FullModel() {
  ModelDescription model = SmallModel(2, 2, 8);
  model.embeddings = {.width = 12, .vocabulary = 20, .positions = 10, .token_types = 2};
  model.layers = 3;
  model.layer_map = {0, 1, 0};
  model.layer.feed_forward.has_gate = true;
  model.layer.extras.has_branch_scale = true;
  model.layer.attention.query_key_norms = QueryKeyNorms::kAllHeads;
  model.layer.extras.has_second_attention_norm = true;
  model.layer.relative_positions = {RelativePositions::kBuckets, 8, 10};
  model.layer.extras.convolution = {.taps = 3, .groups = 2};
  model.patch_embedding = {.has_class = true,
                           .has_distillation = true,
                           .registers = 3,
                           .positions = 6,
                           .has_norm = true};
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

TEST(LoadTest, ReadsEveryWeightInTheListedOrder) {
  const ModelDescription model = FullModel();
  std::vector<std::string> names;
  for (const WeightSpec& spec : ListWeights(model)) names.push_back(spec.name);
  MemoryWeights weights = RandomWeights(model, 1);
  LoadEncoder(model, weights);
  EXPECT_THAT(weights.reads(), ElementsAreArray(names));
}

TEST(LoadTest, LeavesOutAbsentBiases) {
  const ModelDescription model = FullModel();
  std::vector<std::string> names;
  for (const WeightSpec& spec : ListWeights(model)) {
    if (!spec.optional) names.push_back(spec.name);
  }
  MemoryWeights weights = RandomWeights(model, 1, Biases::kNone);
  LoadEncoder(model, weights);
  EXPECT_THAT(weights.reads(), ElementsAreArray(names));
}

TEST(LoadTest, TakesAnAbsentBiasOfOneProjectionAsZeros) {
  const ModelDescription model = SmallModel(1, 2, 8);
  MemoryWeights without = RandomWeights(model, 1);
  without.tensors().erase("layer.0.key.bias");
  MemoryWeights zeros = RandomWeights(model, 1);
  zeros.tensors()["layer.0.key.bias"].assign(16, 0.0f);
  const std::vector<Sequence> inputs = RandomSequences({9}, 16, 1);
  EncoderRun run_without(LoadEncoder(model, without), 16, 1);
  EncoderRun run_zeros(LoadEncoder(model, zeros), 16, 1);
  EXPECT_TRUE(BitEqual(Encode(run_without, inputs, 0, 1)[0], Encode(run_zeros, inputs, 0, 1)[0]));
}

TEST(LoadTest, ReportsProgressUpToTheTotal) {
  for (Biases biases : {Biases::kAll, Biases::kNone}) {
    MemoryWeights weights = RandomWeights(FullModel(), 1, biases);
    std::vector<std::pair<int64_t, int64_t>> calls;
    ASSERT_TRUE(Encoder::Load(FullModel(), weights, [&](int64_t done, int64_t total) {
                  calls.emplace_back(done, total);
                }).ok());
    ASSERT_EQ(calls.size(), weights.reads().size());
    int64_t before = 0;
    for (const auto& [done, total] : calls) {
      EXPECT_GT(done, before);
      EXPECT_EQ(total, calls.back().first);
      before = done;
    }
  }
}

TEST(LoadTest, PassesOnWhatTheSourceSays) {
  const ModelDescription model = FullModel();
  for (const WeightSpec& spec : ListWeights(model)) {
    if (spec.optional) continue;
    MemoryWeights weights = RandomWeights(model, 1);
    weights.tensors().erase(spec.name);
    const auto encoder = Encoder::Load(model, weights, IgnoreProgress);
    EXPECT_EQ(encoder.status().code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(std::string(encoder.status().message()), HasSubstr(spec.name));
  }
}

// Fails to read one weight.
class FailingWeights : public MemoryWeights {
 public:
  FailingWeights(const MemoryWeights& weights, const std::string& failing)
      : MemoryWeights(weights), failing_(failing), error_(absl::DataLossError(failing)) {}

  absl::Status Read(absl::string_view name, absl::Span<float> target) override {
    asked_.emplace_back(name);
    return name == failing_ ? error_ : MemoryWeights::Read(name, target);
  }

  absl::StatusOr<bool> ReadStored(absl::string_view name, DataType /*type*/,
                                  absl::Span<char> /*target*/) override {
    if (name != failing_) return false;
    asked_.emplace_back(name);
    return error_;
  }

  // The names of the weights that were asked for, in this order.
  const std::vector<std::string>& asked() const { return asked_; }

 private:
  std::string failing_;
  absl::Status error_;
  std::vector<std::string> asked_;
};

// Returns models that together have every kind of weight, by name.
std::vector<std::pair<std::string, ModelDescription>> ModelsWithEveryWeight() {
  const ModelDescription small = SmallModel(2, 2, 8);
  std::vector<std::pair<std::string, ModelDescription>> models = {{"full", FullModel()}};
  const auto add = [&](const std::string& name) -> ModelDescription& {
    return models.emplace_back(name, small).second;
  };
  for (const bool shares : {false, true}) {
    add(shares ? "disentangled with shared projections" : "disentangled")
        .layer.relative_positions = {.kind = RelativePositions::kDisentangled,
                                     .buckets = 8,
                                     .max_distance = 30,
                                     .scores_queries = true,
                                     .scores_keys = true,
                                     .shares_projections = shares,
                                     .has_norm = true};
  }
  add("mixture").layer.feed_forward.mixture = {3, 2};
  LayerShape& inside = add("bottleneck").layer;
  inside.extras.bottleneck = {.width = 8, .values_from_outside = true};
  inside.attention.key_width = inside.attention.value_width = 4;
  inside.feed_forward.blocks = 2;
  AttentionBlockShape& linformer = add("linformer").layer.attention;
  linformer.kind = AttentionKind::kLinformer;
  linformer.linformer = {.keys = 3, .positions = 10};
  add("additive").layer.attention.kind = AttentionKind::kAdditive;
  ModelDescription& mlm = add("MLM head");
  mlm.embeddings = {.width = 16, .vocabulary = 20, .token_types = 2, .task_types = 3};
  mlm.vocabulary_head = VocabularyHeadShape{.width = 12};
  add("attention pooling").pooling = {.modes = {PoolingMode::kAttention},
                                      .dense_width = 16,
                                      .dense_residual = Residual::kProjection,
                                      .block = {24, Activation::kGelu}};
  ModelDescription& lexical = add("lexical head");
  lexical.embeddings = {.width = 16, .vocabulary = 20};
  lexical.lexical_head = {.modes = {}, .dense_width = 1, .dense_activation = Activation::kRelu};
  lexical.token_head = {.modes = {}, .dense_width = 5};
  ModelDescription& stored = add("bfloat16 tables");
  stored.embeddings = {.width = 12, .vocabulary = 20, .positions = 10, .token_types = 2};
  stored.embeddings->table_type = DataType::kBFloat16;
  return models;
}

TEST(LoadTest, StopsAtTheFirstErrorOfTheSource) {
  for (const auto& [name, model] : ModelsWithEveryWeight()) {
    const MemoryWeights weights = RandomWeights(model, 1);
    {
      MemoryWeights readable = weights;
      const auto encoder = Encoder::Load(model, readable, IgnoreProgress);
      ASSERT_TRUE(encoder.ok()) << name << ": " << encoder.status();
    }
    std::vector<std::string> asked;
    for (const WeightSpec& spec : ListWeights(model)) {
      asked.push_back(spec.name);
      FailingWeights failing(weights, spec.name);
      const absl::Status status = Encoder::Load(model, failing, IgnoreProgress).status();
      EXPECT_EQ(status, absl::DataLossError(spec.name)) << name;
      EXPECT_THAT(failing.asked(), ElementsAreArray(asked)) << name;
    }
  }
}

TEST(LoadTest, KeepsErrorsOfOneDnn) {
  MemoryWeights weights({{"bias", {1, 2}}});
  WeightLoader loader(weights, 0, IgnoreProgress, {.gemm = Gemm::kOneDnn});
  EXPECT_FALSE(loader.Pack({nullptr, 16, -1, -1}, {}, ProductRows::kBatch));
  const absl::Status status = loader.status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("oneDNN could not pack a weight of [16, -1]: "));
  loader.ReadTable("bias", 2);
  EXPECT_FALSE(loader.ReadLinear("layer", 2, 2));
  EXPECT_EQ(loader.status(), status);
  EXPECT_THAT(weights.reads(), IsEmpty());
}

TEST(LoadTest, MakesNoOtherCopyOfATableThatCannotBeRead) {
  FailingWeights weights(MemoryWeights({}), "word");
  WeightLoader loader(weights, 0, IgnoreProgress);
  for (const std::string name : {"word", "position"}) {
    const AllocationCounter allocations;
    const AlignedBuffer<char> table = loader.ReadStoredTable(name, 1000, DataType::kBFloat16);
    EXPECT_EQ(allocations.count(), name == "word" ? 2 : 1);  // of the name and the table
    EXPECT_THAT(absl::MakeSpan(table.data(), static_cast<size_t>(table.size())), Each(0)) << name;
  }
  EXPECT_EQ(loader.status(), absl::DataLossError("word"));
  EXPECT_THAT(weights.asked(), ElementsAre("word"));
}

TEST(LoadTest, KeepsTheDescription) {
  MemoryWeights weights = RandomWeights(FullModel(), 1);
  EXPECT_EQ(LoadEncoder(FullModel(), weights)->description(), FullModel());
}

// Returns [in, out] of each plan.
std::vector<std::pair<int64_t, int64_t>> PlannedWidths(const ModelDescription& model,
                                                       const ComputeMode& mode = {}) {
  MemoryWeights weights = RandomWeights(model, 1);
  const auto encoder = LoadEncoder(model, weights, mode);
  std::vector<std::pair<int64_t, int64_t>> widths;
  for (const ProductPlan& plan : encoder->product_plans()) {
    widths.emplace_back(plan.in, plan.out);
    EXPECT_GT(plan.k_block, 0);
    EXPECT_EQ(plan.in % plan.k_block, 0);
    EXPECT_NE(plan.gemm, Gemm::kAuto);
  }
  return widths;
}

TEST(ProductPlansTest, AreToldOnceInTheOrderOfFirstUse) {
  for (const ComputeType type : kComputeTypes) {
    EXPECT_THAT(PlannedWidths(SmallModel(3, 2, 8), BestMode(type)),
                ElementsAre(Pair(16, 48), Pair(16, 16), Pair(16, 32), Pair(32, 16)));
  }
}

TEST(ProductPlansTest, AreOfEveryLayerThatIsPacked) {
  EXPECT_THAT(PlannedWidths(FullModel()),
              UnorderedElementsAre(Pair(12, 16), Pair(16, 48), Pair(16, 16), Pair(16, 32),
                                   Pair(32, 16), Pair(24, 8)));
}

TEST(ProductPlansTest, SayWhatOneDnnsProductsAreCutInto) {
  const ModelDescription model = SmallModel(1, 2, 8);
  MemoryWeights weights = RandomWeights(model, 1);
  const auto encoder = LoadEncoder(model, weights, {.gemm = Gemm::kOneDnn});
  for (const ProductPlan& plan : encoder->product_plans()) {
    EXPECT_EQ(plan.gemm, Gemm::kOneDnn);
    EXPECT_EQ(plan.k_block, plan.in);
    EXPECT_THAT(plan.tile_rows, Not(IsEmpty()));
    EXPECT_EQ(plan.tiles_speedup, 0);
  }
}

TEST(PredictLoadBytesTest, BoundsWhatIsHeldAndReadAtOnce) {
  for (const ModelDescription& model : {FullModel(), SmallModel(3, 4, 16)}) {
    for (const ComputeType type : kComputeTypes) {
      const ComputeMode mode = BestMode(type);
      MemoryWeights weights = RandomWeights(model, 1);
      const absl::StatusOr<int64_t> predicted = Encoder::PredictLoadBytes(model, mode);
      ASSERT_TRUE(predicted.ok()) << predicted.status();
      EXPECT_LE(LoadEncoder(model, weights, mode)->weight_bytes(), *predicted);
    }
  }
}

TEST(PredictLoadBytesTest, IsCloseForARealModel) {
  absl::StatusOr<Checkpoint> checkpoint = OpenCheckpoint("synthetic:minilm-l6", {});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const ModelDescription& model = checkpoint->description;
  // That of a layer: the table of words is read to where it stays.
  const int64_t largest = model.layer.feed_forward.width * (model.layer.hidden_size + 1) * 4;
  for (const ComputeType type : kComputeTypes) {
    const ComputeMode mode = BestMode(type);
    const int64_t held = LoadEncoder(model, *checkpoint->weights, mode)->weight_bytes();
    const absl::StatusOr<int64_t> predicted = Encoder::PredictLoadBytes(model, mode);
    ASSERT_TRUE(predicted.ok()) << predicted.status();
    EXPECT_GE(*predicted, held + largest);
    EXPECT_LE(*predicted, held + 2 * largest + held / 20);
  }
}

// The expectation depends on the units of this CPU.
TEST(ComputeModeTest, IsRefusedOrLoaded) {
  const ModelDescription model = SmallModel(1, 2, 8);
  MemoryWeights weights = RandomWeights(model, 1);
  for (const ComputeType type : {ComputeType::kBf16x3, ComputeType::kBf16, ComputeType::kInt8}) {
    const ComputeMode native{type, false};
    const absl::Status expected = CheckComputeMode(native);
    EXPECT_EQ(Encoder::PredictLoadBytes(model, native).status(), expected);
    const auto encoder = Encoder::Load(model, weights, IgnoreProgress, native);
    EXPECT_EQ(encoder.status(), expected);
    if (encoder.ok()) {
      EXPECT_EQ((*encoder)->mode(), native);
    }
    EXPECT_EQ(LoadEncoder(model, weights, {type, true})->mode(), (ComputeMode{type, true}));
  }
  EXPECT_EQ(
      Encoder::Load(model, weights, IgnoreProgress, {ComputeType::kF32, true}).status().code(),
      absl::StatusCode::kInvalidArgument);
}

TEST(ComputeModeTest, PacksWeightsInTheBytesOfTheType) {
  const ModelDescription model = SmallModel(1, 3, 64);
  MemoryWeights weights = RandomWeights(model, 1);
  const int64_t f32 = LoadEncoder(model, weights)->weight_bytes();
  const std::pair<ComputeType, int64_t> widths[] = {
      {ComputeType::kBf16x3, 4}, {ComputeType::kBf16, 2}, {ComputeType::kInt8, 1}};
  for (const auto& [type, native_width] : widths) {
    const ComputeMode mode = BestMode(type);
    const int64_t held = LoadEncoder(model, weights, mode)->weight_bytes();
    const int64_t emulated_width = type == ComputeType::kBf16x3 ? 8 : 4;
    const int64_t width = mode.emulate ? emulated_width : native_width;
    EXPECT_NEAR(static_cast<double>(held), f32 * width / 4.0, f32 / 20.0);
  }
}

// A model whose file is of bfloat16 takes half as much memory for its linear layers and gives the
// bits of float32.
TEST(ComputeModeTest, KeepsWeightsAsTheyAreStored) {
  ModelDescription model = SmallModel(2, 3, 64);
  MemoryWeights weights = RandomWeights(model, 1);
  for (auto& [name, tensor] : weights.tensors()) {
    std::vector<uint16_t> halves(tensor.size());
    const auto count = static_cast<int64_t>(tensor.size());
    FromFloat(tensor.data(), count, DataType::kBFloat16, halves.data());
    ToFloat(DataType::kBFloat16, halves.data(), count, tensor.data());
  }
  model.linear_type = DataType::kBFloat16;
  const auto stored = LoadEncoder(model, weights);
  const auto copied = LoadEncoder(model, weights, {.weights = WeightType::kF32});
  const std::vector<Sequence> inputs = RandomSequences({9, 70, 33}, 192, 1);
  EncoderRun run_stored(stored, 128, 2), run_copied(copied, 128, 1);
  const auto found = Encode(run_stored, inputs, 0, 2), expected = Encode(run_copied, inputs, 0, 2);
  for (size_t i = 0; i < inputs.size(); ++i) EXPECT_TRUE(BitEqual(found[i], expected[i])) << i;
  const auto bytes = static_cast<double>(copied->weight_bytes());
  EXPECT_NEAR(static_cast<double>(stored->weight_bytes()), bytes / 2, bytes / 20);
  EXPECT_GE(*Encoder::PredictLoadBytes(model), stored->weight_bytes());
  EXPECT_LT(*Encoder::PredictLoadBytes(model),
            *Encoder::PredictLoadBytes(model, {.weights = WeightType::kF32}));
}

// Returns the message with which a description is refused.
std::string RefusalOf(const ModelDescription& model) {
  const absl::Status predicted = Encoder::PredictLoadBytes(model).status();
  EXPECT_EQ(predicted.code(), absl::StatusCode::kInvalidArgument);
  MemoryWeights nothing({});
  EXPECT_EQ(Encoder::Load(model, nothing, IgnoreProgress).status(), predicted);
  EXPECT_EQ(EncoderRun::PredictBytes(model, 16, 1).status(), predicted);
  return std::string(predicted.message());
}

TEST(DescriptionTest, RefusesSizesThatOverflow) {
  ModelDescription model = SmallModel(1, 2, 8);
  model.layer.feed_forward.width = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(RefusalOf(model), HasSubstr("overflow"));
  model = SmallModel(kHuge, 2, 8);
  model.layer.hidden_size = kHuge;
  EXPECT_THAT(RefusalOf(model), HasSubstr("overflow"));
  model = FullModel();
  model.embeddings->vocabulary = -1;
  EXPECT_THAT(RefusalOf(model), HasSubstr("negative"));
}

TEST(DescriptionTest, RefusesTablesThatDoNotFitTheirRules) {
  ModelDescription model = FullModel();
  model.embeddings->token_types = 0;
  model.embeddings->task_types = 3;
  EXPECT_EQ(RefusalOf(model), "model description: embeddings: task types require token types");
  model = FullModel();
  model.embeddings->mask_id = 3;
  EXPECT_EQ(RefusalOf(model),
            "model description: embeddings: mask_id cannot be combined with position embeddings, "
            "token types or a projection of word embeddings");
}

TEST(DescriptionTest, MayHaveNoLayersButEmbeddings) {
  ModelDescription model = SmallModel(0, 1, 16);
  model.embeddings = EmbeddingShape{.width = 16, .vocabulary = 9, .has_norm = false};
  EXPECT_TRUE(Encoder::PredictLoadBytes(model).ok());
  model.has_exit_norm = true;
  EXPECT_EQ(RefusalOf(model),
            "model description: a model without layers requires embeddings and cannot have a patch "
            "embedding or a final norm");
  model.has_exit_norm = false;
  model.pooling = {.modes = {PoolingMode::kMean}, .output_width = 3};
  EXPECT_THAT(RefusalOf(model), HasSubstr("pooling: expected a dense layer after pooling before"));
}

TEST(DescriptionTest, RefusesSizesBelowOne) {
  ModelDescription model = SmallModel(1, 2, 8);
  model.layer.attention.heads = 0;
  EXPECT_EQ(RefusalOf(model), "model description: heads: expected at least 1; got 0");
  model = SmallModel(0, 2, 8);
  EXPECT_EQ(RefusalOf(model), "model description: layers: expected at least 1; got 0");
}

TEST(DescriptionTest, RefusesPartsThatDoNotFit) {
  ModelDescription model = SmallModel(1, 2, 8);
  model.layer.norms.placement = NormPlacement::kNone;
  EXPECT_THAT(RefusalOf(model),
              HasSubstr("feed_forward.width: expected 0 (the layer has no residuals); got "));
  model = SmallModel(1, 2, 8);
  model.layer.attention.has_output_projection = false;
  model.layer.attention.value_width = 5;
  EXPECT_EQ(RefusalOf(model),
            "model description: expected attention outputs of hidden_size 16 columns; got 10");
}

TEST(DescriptionTest, RefusesLayersWithoutWeightsOfTheirOwn) {
  const std::vector<std::vector<int64_t>> maps = {{0}, {0, 2, 1}, {1, 1}, {0, 2}, {-1, 0}};
  for (const std::vector<int64_t>& map : maps) {
    ModelDescription model = SmallModel(2, 2, 8);
    model.layer_map = map;
    EXPECT_THAT(RefusalOf(model), HasSubstr("layer_map: expected 2 weight sets, numbered from 0"));
  }
}

TEST(DescriptionTest, RefusesAnotherNumberOfShapesThanOfWeightSets) {
  ModelDescription model = SmallModel(2, 2, 8);
  model.layer_shapes = {model.layer};
  EXPECT_EQ(RefusalOf(model),
            "model description: layer_shapes: expected 0 or 2 (one per weight set); got 1");
}

TEST(DescriptionTest, RefusesShapesThatDoNotFitIntoTheCommonOne) {
  const std::vector<std::function<void(LayerShape&)>> changes = {
      [](LayerShape& layer) { layer.hidden_size = 8; },
      [](LayerShape& layer) { layer.attention.value_width = 4; },
      [](LayerShape& layer) { layer.attention.key_width = 9; },
      [](LayerShape& layer) { layer.attention.key_width = 0; },
      [](LayerShape& layer) { layer.attention.window = 5; },
      [](LayerShape& layer) { layer.feed_forward.width += 1; },
      [](LayerShape& layer) { layer.feed_forward.has_gate = true; },
      [](LayerShape& layer) {
        layer.feed_forward.mixture = {2, 1};
      },
      [](LayerShape& layer) { layer.extras.convolution.taps = 3; },
      [](LayerShape& layer) { layer.norms.placement = NormPlacement::kPre; }};
  for (size_t i = 0; i < changes.size(); ++i) {
    ModelDescription model = SmallModel(2, 2, 8);
    model.SplitShapes();
    changes[i](model.layer_shapes[1]);
    EXPECT_THAT(RefusalOf(model), HasSubstr("layers that fit into the common shape")) << i;
  }
  ModelDescription model = SmallModel(2, 2, 8);
  model.layer.attention.head_numbers = {0, 1};
  EXPECT_THAT(RefusalOf(model), HasSubstr("layer: expected the common shape to have all heads"));
}

TEST(DescriptionTest, ChecksTheShapeOfEachLayer) {
  ModelDescription model = SmallModel(2, 2, 8);
  model.SplitShapes();
  model.layer_shapes[1].norms.has_attention_norm = false;
  EXPECT_THAT(RefusalOf(model), HasSubstr("without an attention norm must be a pre-norm layer"));
  model.layer_shapes[1] = model.layer;
  model.layer_shapes[1].attention.window = -1;
  EXPECT_THAT(RefusalOf(model), HasSubstr("window: expected at least 0; got -1"));
}

TEST(DescriptionTest, RefusesALayerWithoutTheAttentionNormAfterItsBranch) {
  ModelDescription model = SmallModel(1, 2, 8);
  model.layer.norms.has_attention_norm = false;
  EXPECT_THAT(RefusalOf(model), HasSubstr("without an attention norm must be a pre-norm layer"));
}

TEST(DescriptionTest, RefusesABranchScaleWithoutAnOutputProjection) {
  ModelDescription model = SmallModel(1, 2, 8);
  model.layer.extras.has_branch_scale = true;
  model.layer.attention.has_output_projection = false;
  EXPECT_THAT(RefusalOf(model), HasSubstr("a branch scale requires an output projection"));
}

TEST(DescriptionTest, RefusesASecondAttentionNormBeforeTheBranches) {
  ModelDescription model = SmallModel(1, 2, 8);
  model.layer.extras.has_second_attention_norm = true;
  model.layer.norms.placement = NormPlacement::kPre;
  EXPECT_THAT(RefusalOf(model), HasSubstr("a second attention norm requires a post-norm layer"));
}

TEST(DescriptionTest, RefusesTablesOfOtherTypes) {
  ModelDescription model = SmallModel(1, 2, 8);
  model.embeddings = EmbeddingShape{.width = 16, .vocabulary = 10, .norm_epsilon = 1e-12f};
  for (const DataType type : {DataType::kFloat64, DataType::kInt8}) {
    model.embeddings->table_type = type;
    EXPECT_THAT(RefusalOf(model), HasSubstr(absl::StrCat(
                                      "tables of float32, float16 or bfloat16; got ", Name(type))));
  }
}

ModelDescription RotaryModel(RotaryShape rotary) {
  ModelDescription model = SmallModel(1, 2, 8);
  model.layer.relative_positions.kind = RelativePositions::kRotary;
  model.layer.relative_positions.rotary = std::move(rotary);
  return model;
}

TEST(DescriptionTest, RefusesMoreOrLessRotaryColumnsThanAHeadHas) {
  for (const int64_t width : {0, 10}) {
    EXPECT_THAT(
        RefusalOf(RotaryModel({RotaryFrequencies(width, 100)})),
        HasSubstr(absl::StrCat("expected 2..8 rotary columns (at most key_width); got ", width)));
  }
}

TEST(DescriptionTest, RefusesRotaryFrequenciesThatAreNotFiniteOrBelow0) {
  for (const double frequency : {-0.5, std::numeric_limits<double>::infinity(), std::nan("")}) {
    EXPECT_THAT(
        RefusalOf(RotaryModel({{1, frequency}})),
        HasSubstr(absl::StrCat("finite rotary frequencies of at least 0; got ", frequency)));
  }
  ModelDescription model = RotaryModel({RotaryFrequencies(8, 100)});
  model.SplitShapes();
  model.layer_shapes[0].relative_positions.rotary = {{-7}};
  EXPECT_THAT(RefusalOf(model), HasSubstr("finite rotary frequencies of at least 0; got -7"));
}

TEST(DescriptionTest, RefusesARotaryAmplitudeThatIsNotPositive) {
  for (const float amplitude : {0.0f, -1.0f, std::numeric_limits<float>::infinity()}) {
    EXPECT_THAT(RefusalOf(RotaryModel({RotaryFrequencies(8, 100), amplitude})),
                HasSubstr(absl::StrCat("a positive, finite rotary amplitude; got ", amplitude)));
  }
}

TEST(DescriptionTest, RefusesMixturesThatCannotBe) {
  const auto refusal = [](const MixtureShape& mixture, auto change) {
    ModelDescription model = SmallModel(1, 2, 8);
    model.layer.feed_forward.mixture = mixture;
    change(model.layer);
    return RefusalOf(model);
  };
  const auto nothing = [](LayerShape&) {};
  for (const MixtureShape& mixture :
       {MixtureShape{2, 3}, {2, 0}, {0, 1}, {-1, 1}, {2, -1}, {65, 1}, {int64_t{1} << 40, 2}}) {
    EXPECT_THAT(refusal(mixture, nothing),
                HasSubstr(absl::StrCat("expected up to 64 experts, at least 1 and at most all of "
                                       "them per token, in a layer with one feed-forward block "
                                       "and without a branch scale or bottleneck; got ",
                                       mixture.per_token, " of ", mixture.experts)));
  }
  const auto is_refused = HasSubstr("one feed-forward block and without a branch scale");
  EXPECT_THAT(refusal({2, 1}, [](LayerShape& layer) { layer.feed_forward.width = 0; }), is_refused);
  EXPECT_THAT(refusal({2, 1}, [](LayerShape& layer) { layer.feed_forward.blocks = 2; }),
              is_refused);
  EXPECT_THAT(refusal({2, 1}, [](LayerShape& layer) { layer.extras.has_branch_scale = true; }),
              is_refused);
  EXPECT_THAT(refusal({2, 1}, [](LayerShape& layer) { layer.extras.bottleneck.width = 8; }),
              is_refused);
}

TEST(DescriptionTest, RefusesSharedHeadsThatCannotBe) {
  const std::string expected = "expected key_value_heads to be a proper divisor of heads 6";
  for (const int64_t shared : {-1, 4, 6, 12}) {
    ModelDescription model = SmallModel(1, 6, 8);
    model.layer.attention.key_value_heads = shared;
    EXPECT_THAT(RefusalOf(model), HasSubstr(expected)) << shared;
  }
  ModelDescription model = SmallModel(1, 6, 8);
  model.layer.attention.key_value_heads = 2;
  model.layer.attention.keys_are_queries = true;
  EXPECT_THAT(RefusalOf(model), HasSubstr(expected));
  model.layer.attention.keys_are_queries = false;
  model.layer.attention.kind = AttentionKind::kAdditive;
  EXPECT_THAT(RefusalOf(model), HasSubstr(expected));
}

TEST(DescriptionTest, RefusesCausalAttentionThatCannotBe) {
  const auto is_refused = HasSubstr("causal attention requires softmax attention without");
  for (const AttentionKind kind : {AttentionKind::kAdditive, AttentionKind::kCausalLinear}) {
    ModelDescription model = SmallModel(1, 2, 8);
    model.layer.attention.causal = true;
    model.layer.attention.kind = kind;
    EXPECT_THAT(RefusalOf(model), is_refused) << Name(kind);
  }
  ModelDescription model = SmallModel(1, 2, 8);
  model.layer.attention.causal = true;
  model.layer.attention.window = 3;
  model.layer.attention.pattern = {.block = 2};
  EXPECT_THAT(RefusalOf(model), is_refused);
}

TEST(DescriptionTest, RefusesWindowsThatCannotBe) {
  ModelDescription model = SmallModel(1, 2, 8);
  model.layer.attention.window = -1;
  EXPECT_THAT(RefusalOf(model), HasSubstr("window: expected at least 0; got -1"));
  model.layer.attention.window = 1;
  for (const AttentionPattern& pattern :
       {AttentionPattern{.block = 0}, AttentionPattern{.first_global = -1},
        AttentionPattern{.last_global = -1}, AttentionPattern{.first_repeats = -1},
        AttentionPattern{.full_up_to = -1}}) {
    model.layer.attention.pattern = pattern;
    EXPECT_THAT(RefusalOf(model), HasSubstr("expected a window, blocks of at least 1 position"));
  }
  model.layer.attention.pattern = {.block = int64_t{1} << 61};
  EXPECT_THAT(RefusalOf(model), HasSubstr("expected fewer blocks"));
  for (const BlockLists& listed :
       {BlockLists({{0, -1}}), BlockLists({{-1, 0}}), BlockLists({}, {-1}), BlockLists({}, {3, 3}),
        BlockLists({{1, 2}, {0, 0}, {1, 2}}), BlockLists({{1, int64_t{1} << 40}})}) {
    model.layer.attention.pattern = {.listed = listed};
    EXPECT_THAT(RefusalOf(model), HasSubstr("expected distinct block pairs and distinct global "
                                            "blocks in 0..2147483647; got blocks "));
  }
  model.layer.attention.pattern = {.block = int64_t{1} << 30,
                                   .listed = BlockLists({{0, 1}, {1, 0}})};
  EXPECT_THAT(RefusalOf(model), HasSubstr("expected fewer blocks"));
  model.layer.attention.pattern = {.listed = BlockLists({{0, 1}})};
  model.layer.attention.window = 0;
  EXPECT_THAT(RefusalOf(model), HasSubstr("got a window of 0, blocks of 1"));
  model.layer.attention.pattern = {.first_global = 1};
  EXPECT_THAT(RefusalOf(model), HasSubstr("got a window of 0, blocks of 1"));
}

TEST(DescriptionTest, RefusesPositionsThatAKindOfAttentionHasNoScoresFor) {
  ModelDescription model = SmallModel(1, 2, 8);
  model.layer.attention.kind = AttentionKind::kLinear;
  model.layer.relative_positions.kind = RelativePositions::kAlibi;
  EXPECT_THAT(RefusalOf(model),
              HasSubstr("linear attention cannot be combined with alibi positions"));
  model.layer.relative_positions = {};
  model.layer.attention.window = 1;
  EXPECT_THAT(RefusalOf(model), HasSubstr("linear attention cannot be combined with a window"));
  model.layer.attention.window = 0;
  model.layer.attention.kind = AttentionKind::kAdditive;
  model.layer.relative_positions = {RelativePositions::kDisentangled, 8, 30};
  model.layer.relative_positions.scores_keys = true;
  EXPECT_THAT(RefusalOf(model),
              HasSubstr("additive attention cannot be combined with disentangled"));
  model = SmallModel(1, 2, 8);
  model.layer.attention.linformer.keys = 3;
  EXPECT_THAT(RefusalOf(model), HasSubstr("got 0 positions and 3 keys in softmax attention"));
  model.layer.attention.kind = AttentionKind::kLinformer;
  EXPECT_THAT(RefusalOf(model), HasSubstr("got 0 positions and 3 keys in linformer"));
}

TEST(DescriptionTest, RefusesBottlenecksThatCannotBe) {
  ModelDescription model = SmallModel(1, 2, 8);
  model.layer.extras.bottleneck.width = 8;
  model.layer.norms.placement = NormPlacement::kPre;
  EXPECT_THAT(RefusalOf(model), HasSubstr("bottleneck: expected a positive width in a post-norm"));
  model = SmallModel(1, 2, 8);
  model.layer.extras.bottleneck.values_from_outside = true;
  EXPECT_THAT(RefusalOf(model), HasSubstr("bottleneck.values_from_outside requires"));
  model = SmallModel(1, 2, 8);
  model.layer.feed_forward.blocks = 0;
  EXPECT_THAT(RefusalOf(model), HasSubstr("expected 1 feed-forward block, or up to 1024"));
  model.layer.feed_forward.blocks = 2;
  model.layer.feed_forward.has_gate = true;
  EXPECT_THAT(RefusalOf(model), HasSubstr("without a gate or branch scale; got 2"));
  model = SmallModel(1, 2, 8);
  model.embeddings = {.width = 12, .vocabulary = 20, .projects_words = true};
  EXPECT_THAT(RefusalOf(model), HasSubstr("embeddings: has_neighbours requires projects_words"));
}

TEST(DescriptionTest, RefusesConvolutionsThatCannotBe) {
  ModelDescription model = SmallModel(1, 2, 8);
  for (const ConvolutionShape& convolution :
       {ConvolutionShape{.taps = 2}, ConvolutionShape{.taps = -1}, ConvolutionShape{.taps = 1025},
        ConvolutionShape{.taps = 3, .groups = 0}, ConvolutionShape{.taps = 3, .groups = 3}}) {
    model.layer.extras.convolution = convolution;
    EXPECT_EQ(RefusalOf(model),
              absl::StrCat("model description: convolution: expected an odd number of taps up to "
                           "1023 and groups that divide hidden_size 16, in a post-norm layer "
                           "without a bottleneck; got ",
                           convolution.taps, " taps in ", convolution.groups, " groups"));
  }
  model.layer.extras.convolution = {.taps = 3};
  model.layer.norms.placement = NormPlacement::kPre;
  EXPECT_THAT(RefusalOf(model), HasSubstr("convolution: expected"));
}

TEST(DescriptionTest, RefusesDistancesThatCannotBeScored) {
  ModelDescription model = SmallModel(1, 2, 8);
  RelativePositionShape& relative = model.layer.relative_positions;
  relative = {RelativePositions::kDisentangled, 8, 30};
  EXPECT_THAT(RefusalOf(model), HasSubstr("requires scores_queries or scores_keys"));
  relative.scores_keys = true;
  for (const auto& [buckets, max_distance] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 0}, {1, 10}, {8, 5}, {-1, 10}, {0, -1}}) {
    relative.buckets = buckets;
    relative.max_distance = max_distance;
    EXPECT_THAT(RefusalOf(model),
                HasSubstr("relative_positions: expected 0 buckets and a positive"));
  }
  relative.buckets = 0;
  relative.max_distance = int64_t{1} << 61;
  EXPECT_THAT(RefusalOf(model), HasSubstr("a size is negative, or sizes overflow 64 bits"));
  relative.max_distance = 30;
  model.layer.attention.keys_are_queries = true;
  EXPECT_THAT(RefusalOf(model), HasSubstr("expected separate projections of queries, keys and"));
}

TEST(DescriptionTest, RefusesASecondLinearLayerWithoutAFirst) {
  ModelDescription model = SmallModel(1, 2, 8);
  model.classifier = {.modes = {PoolingMode::kMean}, .output_width = 3};
  EXPECT_THAT(RefusalOf(model), HasSubstr("expected a dense layer after pooling before a second"));
  model.classifier = {.modes = {PoolingMode::kMean}, .further_dense = {{3}}};
  EXPECT_THAT(RefusalOf(model), HasSubstr("expected a dense layer after pooling before a second"));
}

TEST(DescriptionTest, RefusesTokenHeadsWithModesAndLinearLayersWithoutAWidth) {
  ModelDescription model = SmallModel(1, 2, 8);
  model.pooling = {.modes = {PoolingMode::kMean}, .dense_width = 3, .further_dense = {{3}, {0}}};
  EXPECT_THAT(RefusalOf(model), HasSubstr("expected dense layers of positive width; got 0"));
  model.pooling.reset();
  model.token_head = {.modes = {PoolingMode::kMean}, .dense_width = 3};
  EXPECT_THAT(RefusalOf(model), HasSubstr("token_head: expected 0 pooling modes; got 1"));
}

TEST(DescriptionTest, RefusesInputsThatCannotBeAdded) {
  ModelDescription model = SmallModel(1, 2, 8);
  model.pooling = {
      .modes = {PoolingMode::kMean}, .dense_width = 3, .dense_residual = Residual::kInput};
  EXPECT_THAT(RefusalOf(model),
              HasSubstr("expected a dense layer of width 16 (its input is added); got 3"));
  model.pooling->dense_width = 0;
  EXPECT_THAT(RefusalOf(model),
              HasSubstr("expected a dense layer of width 16 (its input is added); got 0"));
  model.pooling->dense_width = 3;
  model.pooling->dense_residual = Residual::kProjection;
  model.pooling->further_dense = {{3, Activation::kTanh, Residual::kInput},
                                  {4, Activation::kTanh, Residual::kInput}};
  EXPECT_THAT(RefusalOf(model), HasSubstr("of width 3 (its input is added); got 4"));
}

TEST(DescriptionTest, RefusesALateMeanOfOtherHeadsThanClassifiers) {
  ModelDescription model = SmallModel(1, 2, 8);
  model.pooling = {.modes = {PoolingMode::kLateMean}};
  EXPECT_THAT(RefusalOf(model), HasSubstr("late_mean: expected the only pooling mode of a "
                                          "classifier; got 1 modes of pooling"));
  model.pooling.reset();
  model.classifier = {.modes = {PoolingMode::kLateMean, PoolingMode::kMean}, .dense_width = 3};
  EXPECT_THAT(RefusalOf(model), HasSubstr("got 2 modes of classifier"));
}

TEST(DescriptionTest, RefusesPatchEmbeddingsThatDoNotFit) {
  ModelDescription model = SmallModel(1, 2, 8);
  for (const PatchEmbeddingShape& shape :
       {PatchEmbeddingShape{.has_distillation = true},
        PatchEmbeddingShape{.has_class = true, .positions = 1}}) {
    model.patch_embedding = shape;
    EXPECT_THAT(RefusalOf(model), HasSubstr("patch_embedding: expected at least 0 registers"));
  }
  model.patch_embedding = {.feature_width = -1};
  EXPECT_THAT(RefusalOf(model), HasSubstr("feature_width: expected at least 0; got -1"));
  model.patch_embedding = {.has_class = true, .registers = -1};
  EXPECT_THAT(RefusalOf(model), HasSubstr("a size is negative, or sizes overflow 64 bits"));
}

}  // namespace encoder_load_test
}  // namespace attendant::test_support
