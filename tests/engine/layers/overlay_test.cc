#include <gtest/gtest.h>

#include "engine/layers/encoder.h"
#include "tests/engine/layers/engine_calls.h"
#include "tests/support/memory_weights.h"

namespace attendant::testing {
namespace {

bool IsOfNorm(const std::string& name) { return name.find("norm.") != std::string::npos; }

// With a norm of every kind.
ModelDescription ModelWithNorms() {
  ModelDescription model = SmallModel(2, 2, 8);
  model.embeddings = {.width = 16, .vocabulary = 20, .positions = 10};
  model.layer.has_query_key_norms = true;
  model.layer.has_second_attention_norm = true;
  model.front = {.has_class = true, .has_norm = true};
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

// The weights of `base`, but the norms of `norms`.
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
    const auto overlay = Encoder::LoadOverlay(*base, norms);
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
  model.layer.bottleneck = 8;
  model.layer.key_width = model.layer.value_width = 4;
  model.layer.values_from_outside = true;
  model.layer.feed_forwards = 2;
  MemoryWeights base_weights = RandomWeights(model, 1), norms = RandomWeights(model, 2);
  MemoryWeights merged = Merged(base_weights, norms);
  std::erase_if(norms.tensors(), [](const auto& tensor) { return !IsOfNorm(tensor.first); });
  const auto overlay = Encoder::LoadOverlay(*LoadEncoder(model, base_weights), norms);
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
  const auto overlay = Encoder::LoadOverlay(*LoadEncoder(model, weights), norms);
  EXPECT_EQ(overlay.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(overlay.status().message(),
            "relative_positions_norm: expected none over a loaded model, whose projections of "
            "distances it would change");
}

TEST(OverlayTest, OutlivesItsBase) {
  const ModelDescription model = ModelWithNorms();
  MemoryWeights weights = RandomWeights(model, 1), norms({});
  auto base = LoadEncoder(model, weights);
  const auto sequences = RandomSequences({4}, 16, 7);
  EncoderRun base_run(base, 16, 1);
  const auto expected = Encode(base_run, *base, sequences);
  const auto overlay = *Encoder::LoadOverlay(*base, norms);
  EXPECT_EQ(overlay->weight_bytes(), 0);
  base.reset();
  EncoderRun run(overlay, 16, 1);
  EXPECT_TRUE(BitEqual(Encode(run, *overlay, sequences)[0], expected[0]));
}

TEST(OverlayTest, PassesOnWhatReadingRefuses) {
  const ModelDescription model = ModelWithNorms();
  MemoryWeights weights = RandomWeights(model, 1), norms({{"exit_norm.weight", {1, 2}}});
  const auto overlay = Encoder::LoadOverlay(*LoadEncoder(model, weights), norms);
  EXPECT_EQ(overlay.status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace attendant::testing
