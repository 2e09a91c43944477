#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "engine/base/shape.h"
#include "engine/checkpoint/pruning.h"
#include "engine/layers/encoder.h"
#include "tests/engine/checkpoint/model_files.h"
#include "tests/support/engine_calls.h"
#include "tests/support/memory_weights.h"

namespace attendant::test_support {
namespace overlay_test {

using ::testing::ElementsAre;

bool IsOfNorm(const std::string& name) { return name.find("norm.") != std::string::npos; }

// Returns a description with a norm of every kind.
ModelDescription ModelWithNorms() {
  ModelDescription model = SmallModel(2, 2, 8);
  model.embeddings = {.width = 16, .vocabulary = 20, .positions = 10};
  model.layer.attention.query_key_norms = QueryKeyNorms::kAllHeads;
  model.layer.extras.has_second_attention_norm = true;
  model.layer.feed_forward.mixture = {3, 2};
  model.patch_embedding = {.has_class = true, .has_norm = true};
  model.has_exit_norm = true;
  model.classifier = {
      .modes = {PoolingMode::kFirstToken}, .dense_width = 7, .has_dense_norm = true};
  return model;
}

std::vector<float> Embedded(EncoderRun& run) {
  const std::vector<int32_t> ids = {3, 1, 4};
  run.Embed({.words = ids, .positions = ids, .token_types = {}}, 0);
  const MatrixView<float> input = run.input();
  return {input.data, input.row(3)};
}

// Returns the weights of `base` with the norms of `norms`.
MemoryWeights Merged(const MemoryWeights& base, const MemoryWeights& norms) {
  MemoryWeights merged = base;
  for (auto& [name, values] : merged.tensors()) {
    if (IsOfNorm(name)) values = MemoryWeights(norms).tensors().at(name);
  }
  return merged;
}

TEST(OverlayTest, IsTheModelWithTheseNorms) {
  const ModelDescription model = ModelWithNorms();
  MemoryWeights base_weights = RandomWeights(model, 1), norms = RandomWeights(model, 2);
  MemoryWeights merged = Merged(base_weights, norms);
  std::erase_if(norms.tensors(), [](const auto& tensor) { return !IsOfNorm(tensor.first); });
  int64_t bytes = 0;
  for (const auto& [name, values] : norms.tensors())
    bytes += 4 * static_cast<int64_t>(values.size());

  for (const ComputeMode& mode : {ComputeMode{}, BestMode(ComputeType::kInt8)}) {
    const auto base = LoadEncoder(model, base_weights, mode);
    const auto expected = LoadEncoder(model, merged, mode);
    const auto overlay = Encoder::LoadOverlay(*base, base->description(), norms);
    ASSERT_TRUE(overlay.ok()) << overlay.status();
    EXPECT_EQ((*overlay)->weight_bytes(), bytes);
    EXPECT_EQ((*overlay)->mode(), mode);

    const auto sequences = RandomSequences({3, 5}, 16, 7);
    EncoderRun run(*overlay, 16, 1), expected_run(expected, 16, 1), base_run(base, 16, 1);
    const auto answer = Encode(run, **overlay, sequences);
    const auto wanted = Encode(expected_run, *expected, sequences);
    const auto of_base = Encode(base_run, *base, sequences);
    for (size_t i = 0; i < answer.size(); ++i) {
      EXPECT_TRUE(BitEqual(answer[i], wanted[i]));
      EXPECT_FALSE(BitEqual(answer[i], of_base[i]));
    }
    EXPECT_TRUE(BitEqual(Embedded(run), Embedded(expected_run)));
  }
}

TEST(OverlayTest, ReplacesNormsOfBottlenecksAndOfAllFeedForwardBlocks) {
  ModelDescription model = SmallModel(1, 2, 8);
  model.layer.extras.bottleneck.width = 8;
  model.layer.attention.key_width = model.layer.attention.value_width = 4;
  model.layer.extras.bottleneck.values_from_outside = true;
  model.layer.feed_forward.blocks = 2;
  MemoryWeights base_weights = RandomWeights(model, 1), norms = RandomWeights(model, 2);
  MemoryWeights merged = Merged(base_weights, norms);
  std::erase_if(norms.tensors(), [](const auto& tensor) { return !IsOfNorm(tensor.first); });
  const auto overlay = Encoder::LoadOverlay(*LoadEncoder(model, base_weights), model, norms);
  ASSERT_TRUE(overlay.ok()) << overlay.status();
  const auto expected = LoadEncoder(model, merged);
  const auto sequences = RandomSequences({3, 5}, 16, 7);
  EncoderRun run(*overlay, 16, 1), expected_run(expected, 16, 1);
  const auto answer = Encode(run, **overlay, sequences);
  const auto wanted = Encode(expected_run, *expected, sequences);
  for (size_t i = 0; i < answer.size(); ++i) EXPECT_TRUE(BitEqual(answer[i], wanted[i]));
}

TEST(OverlayTest, RefusesTheNormOfDistances) {
  ModelDescription model = SmallModel(1, 2, 8);
  model.layer.relative_positions = {RelativePositions::kDisentangled, 8, 30};
  model.layer.relative_positions.scores_keys = true;
  model.layer.relative_positions.has_norm = true;
  MemoryWeights weights = RandomWeights(model, 1);
  MemoryWeights norms({{"relative_positions_norm.weight", std::vector<float>(16, 2.0f)}});
  const auto overlay = Encoder::LoadOverlay(*LoadEncoder(model, weights), model, norms);
  EXPECT_EQ(overlay.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(overlay.status().message(),
            "relative_positions_norm: not supported in an overlay: the base's relative position "
            "projections depend on this norm");
}

// Returns the base without some heads, with the same weights.
Checkpoint Pruned(const ModelDescription& model, const std::string& json) {
  const TempFolder folder;
  folder.Write("prune.json", json);
  Checkpoint checkpoint;
  checkpoint.description = model;
  checkpoint.weights = std::make_unique<MemoryWeights>(RandomWeights(model, 1));
  const absl::Status status = PruneHeads(folder.File("prune.json"), checkpoint);
  EXPECT_TRUE(status.ok()) << status;
  return checkpoint;
}

bool IsOfAttention(const std::string& name) {
  for (const char* part : {".query.", ".key.", ".value.", ".output."}) {
    if (name.find(part) != std::string::npos) return true;
  }
  return false;
}

// Returns the norms of seed 2 and the attention that is left in `layers`.
MemoryWeights NormsAndAttention(Checkpoint& pruned, const std::vector<std::string>& layers) {
  MemoryWeights weights = RandomWeights(pruned.description, 2);
  std::erase_if(weights.tensors(), [&](const auto& tensor) {
    const bool is_pruned = std::any_of(layers.begin(), layers.end(), [&](const std::string& layer) {
      return tensor.first.rfind(layer, 0) == 0;
    });
    return !IsOfNorm(tensor.first) && !(is_pruned && IsOfAttention(tensor.first));
  });
  for (auto& [name, values] : weights.tensors()) {
    if (IsOfNorm(name)) continue;
    const absl::Status status = pruned.weights->Read(name, absl::MakeSpan(values));
    EXPECT_TRUE(status.ok()) << status;
  }
  return weights;
}

int64_t NormBytes(MemoryWeights& weights) {
  int64_t bytes = 0;
  for (const auto& [name, values] : weights.tensors()) {
    if (IsOfNorm(name)) bytes += 4 * static_cast<int64_t>(values.size());
  }
  return bytes;
}

ModelDescription PrunableModel(QueryKeyNorms norms = QueryKeyNorms::kNone) {
  ModelDescription model = ModelWithNorms();
  model.layer.attention.query_key_norms = norms;
  model.layer.relative_positions = {RelativePositions::kBuckets, 8, 16};
  return model;
}

// The pruned model gives the same bits when it is loaded alone with these norms.
void ExpectBitsOfThePrunedModel(const ModelDescription& model) {
  for (const ComputeMode& mode : {ComputeMode{}, BestMode(ComputeType::kInt8)}) {
    for (const char* json : {R"({"1": [0]})", R"({"1": [1, 0]})", R"({"1": []})"}) {
      Checkpoint pruned = Pruned(model, json);
      MemoryWeights weights = NormsAndAttention(pruned, {"layer.1."});
      MemoryWeights base_weights = RandomWeights(model, 1);
      const auto base = LoadEncoder(model, base_weights, mode);
      const auto overlay = Encoder::LoadOverlay(*base, pruned.description, weights);
      ASSERT_TRUE(overlay.ok()) << overlay.status();
      EXPECT_EQ((*overlay)->description(), pruned.description);

      MemoryWeights all({});
      for (const WeightSpec& spec : ListWeights(pruned.description)) {
        if (!pruned.weights->Has(spec.name)) continue;
        std::vector<float>& values = all.tensors()[spec.name];
        values.resize(static_cast<size_t>(ElementCount(spec.shape).value()));
        ASSERT_TRUE(pruned.weights->Read(spec.name, absl::MakeSpan(values)).ok());
        if (IsOfNorm(spec.name)) values = weights.tensors().at(spec.name);
      }
      const auto expected = LoadEncoder(pruned.description, all, mode);
      const auto sequences = RandomSequences({3, 5}, 16, 7);
      EncoderRun run(*overlay, 16, 1), expected_run(expected, 16, 1);
      const auto answer = Encode(run, **overlay, sequences);
      const auto wanted = Encode(expected_run, *expected, sequences);
      for (size_t i = 0; i < answer.size(); ++i) EXPECT_TRUE(BitEqual(answer[i], wanted[i]));
    }
  }
}

TEST(OverlayTest, MayLeaveOutHeads) { ExpectBitsOfThePrunedModel(PrunableModel()); }

TEST(OverlayTest, MayLeaveOutHeadsWithNorms) {
  ExpectBitsOfThePrunedModel(PrunableModel(QueryKeyNorms::kEachHead));
}

TEST(OverlayTest, OwnsTheAttentionOfPrunedLayersAlone) {
  const ModelDescription model = PrunableModel();
  MemoryWeights base_weights = RandomWeights(model, 1);
  const auto base = LoadEncoder(model, base_weights);
  const auto own_bytes = [&](const char* json, const std::vector<std::string>& layers) {
    Checkpoint pruned = Pruned(model, json);
    MemoryWeights weights = NormsAndAttention(pruned, layers);
    const auto overlay = Encoder::LoadOverlay(*base, pruned.description, weights);
    EXPECT_TRUE(overlay.ok()) << overlay.status();
    for (const std::string& name : weights.reads()) {
      EXPECT_TRUE(IsOfNorm(name) || IsOfAttention(name)) << name;
    }
    EXPECT_EQ(weights.reads().size(), weights.tensors().size());
    const int64_t bytes = (*overlay)->weight_bytes() - NormBytes(weights);
    EXPECT_LE(bytes, *Encoder::PredictOverlayBytes(pruned.description));
    return bytes;
  };
  EXPECT_EQ(own_bytes(R"({"0": []})", {}), 0);
  const int64_t one = own_bytes(R"({"0": [1]})", {"layer.0."});
  // For 16 columns: 8 rows each of queries, keys and values, and 8 columns of the output.
  EXPECT_GE(one, 4 * 4 * 16 * 8);
  EXPECT_LT(one, base->weight_bytes() / 2);
  EXPECT_EQ(own_bytes(R"({"0": [1], "1": [0]})", {"layer.0.", "layer.1."}), 2 * one);
}

TEST(OverlayTest, HasThePlansOfItsBaseAndThoseOfPrunedLayers) {
  const ModelDescription model = PrunableModel();
  MemoryWeights base_weights = RandomWeights(model, 1), no_norms({});
  const auto base = LoadEncoder(model, base_weights);
  EXPECT_EQ((*Encoder::LoadOverlay(*base, base->description(), no_norms))->product_plans(),
            base->product_plans());

  Checkpoint pruned = Pruned(model, R"({"1": [0]})");
  MemoryWeights weights = NormsAndAttention(pruned, {"layer.1."});
  const auto overlay = Encoder::LoadOverlay(*base, pruned.description, weights);
  ASSERT_TRUE(overlay.ok()) << overlay.status();
  std::vector<ProductPlan> more = (*overlay)->product_plans();
  const auto own = more.begin() + static_cast<std::ptrdiff_t>(base->product_plans().size());
  EXPECT_TRUE(std::equal(more.begin(), own, base->product_plans().begin()));
  ASSERT_EQ(more.end() - own, 2);
  EXPECT_EQ(std::pair(own[0].in, own[0].out), std::pair(int64_t{16}, int64_t{24}));
  EXPECT_EQ(std::pair(own[1].in, own[1].out), std::pair(int64_t{8}, int64_t{16}));
}

TEST(OverlayTest, RefusesAnotherModelAndAPrunedBase) {
  const ModelDescription model = PrunableModel();
  Checkpoint pruned = Pruned(model, R"({"0": [1]})"), otherwise = Pruned(model, R"({"0": [0]})");
  const auto refusal = [](const Encoder& base, const ModelDescription& description) {
    MemoryWeights weights({});
    const absl::Status status = Encoder::LoadOverlay(base, description, weights).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(refusal(*LoadEncoder(pruned.description, *pruned.weights), otherwise.description),
            "overlay: expected the base's own description (its heads are pruned); got a different "
            "description; load the base without pruned heads");
  MemoryWeights weights = RandomWeights(model, 1);
  ModelDescription wider = pruned.description;
  wider.layer.feed_forward.width += 1;
  EXPECT_EQ(refusal(*LoadEncoder(model, weights), wider),
            "overlay: expected the base's description, which may differ only in pruned heads; got "
            "a different description");
}

TEST(OverlayTest, OutlivesItsBase) {
  const ModelDescription model = ModelWithNorms();
  MemoryWeights weights = RandomWeights(model, 1), norms({});
  auto base = LoadEncoder(model, weights);
  const auto sequences = RandomSequences({4}, 16, 7);
  EncoderRun base_run(base, 16, 1);
  const auto expected = Encode(base_run, *base, sequences);
  const auto overlay = *Encoder::LoadOverlay(*base, base->description(), norms);
  EXPECT_EQ(overlay->weight_bytes(), 0);
  base.reset();
  EncoderRun run(overlay, 16, 1);
  EXPECT_TRUE(BitEqual(Encode(run, *overlay, sequences)[0], expected[0]));
}

TEST(OverlayTest, StopsAtTheFirstErrorOfTheSource) {
  const ModelDescription model = PrunableModel();
  MemoryWeights base_weights = RandomWeights(model, 1);
  const auto base = LoadEncoder(model, base_weights);
  Checkpoint pruned = Pruned(model, R"({"0": [0], "1": [0]})");
  MemoryWeights weights = NormsAndAttention(pruned, {"layer.0.", "layer.1."});
  weights.tensors().erase("layer.0.value.weight");
  const auto overlay = Encoder::LoadOverlay(*base, pruned.description, weights);
  EXPECT_EQ(overlay.status(), absl::NotFoundError("layer.0.value.weight: no such tensor"));
  EXPECT_THAT(weights.reads(), ElementsAre("layer.0.query.weight", "layer.0.query.bias",
                                           "layer.0.key.weight", "layer.0.key.bias"));
}

TEST(OverlayTest, PassesOnWhatReadingRefuses) {
  const ModelDescription model = ModelWithNorms();
  MemoryWeights weights = RandomWeights(model, 1), norms({{"exit_norm.weight", {1, 2}}});
  const auto overlay = Encoder::LoadOverlay(*LoadEncoder(model, weights), model, norms);
  EXPECT_EQ(overlay.status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace overlay_test
}  // namespace attendant::test_support
