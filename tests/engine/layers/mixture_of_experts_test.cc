#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/layers/feed_forward.h"
#include "engine/layers/state/rows.h"
#include "tests/support/engine_calls.h"
#include "tests/support/memory_weights.h"
#include "tests/support/random_values.h"

namespace attendant::test_support {
namespace mixture_of_experts_test {

constexpr int64_t kWidth = 48;
constexpr MixtureShape kMixture = {5, 2};

// One block, computed as the layers do.
class Block {
 public:
  Block(const ModelDescription& model, const ComputeMode& mode, int64_t tokens, int threads)
      : model_(model),
        mode_(mode),
        workspace_(model, tokens, threads, mode),
        tables_(model, tokens) {}

  Workspace& workspace() { return workspace_; }

  WeightLoader LoaderOf(MemoryWeights& weights) { return WeightLoader(weights, 0, ignore_, mode_); }

  // Loads the mixture of the only layer.
  MixtureOfExperts LoadMixture(MemoryWeights& weights) {
    WeightLoader loader = LoaderOf(weights);
    MixtureOfExperts mixture("layer.0.", model_.layer, loader);
    EXPECT_TRUE(loader.status().ok()) << loader.status();
    workspace_.Reserve(loader.product_uses());
    return mixture;
  }

  // Returns the result of the body for the rows [tokens, E], which are in the branch buffer at
  // first if norms come before the body.
  std::vector<float> Compute(const BlockBody& body, const std::vector<float>& x) {
    const int64_t tokens = static_cast<int64_t>(x.size()) / kWidth;
    const LayerRun run = {.workspace = workspace_, .tables = tables_, .tokens = tokens};
    const bool is_normed = model_.layer.norms.are_first();
    const MatrixView<float> rows =
        run.Kept(is_normed ? workspace_.activations.branch() : workspace_.activations.hidden());
    std::copy(x.begin(), x.end(), rows.data);
    const MatrixView<float> y = body.Forward(rows, run);
    return {y.data, y.data + y.rows * y.cols};
  }

 private:
  static void Ignore(int64_t, int64_t) {}

  const ModelDescription model_;
  const ComputeMode mode_;
  absl::FunctionRef<void(int64_t, int64_t)> ignore_ = Ignore;
  Workspace workspace_;
  PositionTables tables_;
};

ModelDescription MixedModel(NormPlacement placement, bool has_gate) {
  ModelDescription model = SmallModel(1, 3, 16);
  model.layer.norms.placement = placement;
  model.layer.feed_forward.has_gate = has_gate;
  model.layer.feed_forward.mixture = kMixture;
  return model;
}

std::vector<float> Softmax(const float* scores, int64_t count) {
  const float largest = *std::max_element(scores, scores + count);
  std::vector<float> probabilities;
  float sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    probabilities.push_back(std::exp(scores[i] - largest));
    sum += probabilities.back();
  }
  for (float& probability : probabilities) probability /= sum;
  return probabilities;
}

// Computes every expert for every row, and adds up those that the row chooses.
std::vector<float> Naive(MemoryWeights& weights, Block& block, const ModelDescription& model,
                         const std::vector<float>& x) {
  WeightLoader loader = block.LoaderOf(weights);
  const PackedLinear router = loader.ReadFloat32Linear("layer.0.router", kMixture.experts, kWidth);
  const int64_t tokens = static_cast<int64_t>(x.size()) / kWidth, padded = PaddedRows(tokens);
  std::vector<float> rows = x, scores(padded * kMixture.experts);
  rows.resize(padded * kWidth);
  block.workspace().gemm.Reserve(router, padded);
  block.workspace().gemm.Apply(
      router, MatrixView<const float>{rows.data(), padded, kWidth, kWidth},
      MatrixView<float>{scores.data(), padded, kMixture.experts, kMixture.experts});
  std::vector<std::vector<float>> made;
  for (int64_t e = 0; e < kMixture.experts; ++e) {
    const FeedForward expert(absl::StrCat("layer.0.expert.", e, "."), model.layer, loader);
    block.workspace().Reserve(loader.product_uses());
    made.push_back(block.Compute(expert, x));
  }
  const std::vector<float>& bias = weights.tensors().at("layer.0.experts_bias");
  std::vector<float> y(x.size(), 0.0f);
  for (int64_t r = 0; r < tokens; ++r) {
    const std::vector<float> p = Softmax(scores.data() + r * kMixture.experts, kMixture.experts);
    std::vector<int64_t> order(kMixture.experts);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return p[a] > p[b]; });
    order.resize(kMixture.per_token);
    std::sort(order.begin(), order.end());
    for (int64_t c = 0; c < kWidth; ++c) {
      float& sum = y[r * kWidth + c];
      for (const int64_t e : order) sum += p[e] * made[e][r * kWidth + c];
      sum += bias[c];
    }
  }
  return y;
}

class MixtureTest : public ::testing::TestWithParam<ComputeType> {};

INSTANTIATE_TEST_SUITE_P(Types, MixtureTest, ::testing::ValuesIn(kComputeTypes),
                         [](const auto& tested) { return Name(tested.param); });

// Some batches have more rows than are computed at a time.
TEST_P(MixtureTest, HasTheBitsOfEveryExpertComputedForEveryRow) {
  for (const auto& [placement, has_gate] :
       {std::pair{NormPlacement::kPost, false}, {NormPlacement::kPre, true}}) {
    const ModelDescription model = MixedModel(placement, has_gate);
    MemoryWeights weights = RandomWeights(model, 1);
    for (const int64_t tokens : {1, 5, 16, 100, 1500}) {
      Block block(model, BestMode(GetParam()), tokens, 2);
      const MixtureOfExperts mixture = block.LoadMixture(weights);
      const std::vector<float> x = RandomValues(tokens * kWidth, 3);
      const std::vector<float> computed = block.Compute(mixture, x);
      EXPECT_TRUE(BitEqual(computed, Naive(weights, block, model, x))) << tokens;
    }
  }
}

// All tokens of a batch may choose the same experts.
TEST_P(MixtureTest, ComputesRowsOfOneChoice) {
  const ModelDescription model = MixedModel(NormPlacement::kPost, false);
  MemoryWeights weights = RandomWeights(model, 1);
  std::fill_n(weights.tensors().at("layer.0.router.weight").data(), kMixture.experts * kWidth, 0);
  weights.tensors().at("layer.0.router.bias") = {0, 3, 0, 2, 0};
  const int64_t tokens = 1100;
  Block block(model, BestMode(GetParam()), tokens, 2);
  const MixtureOfExperts mixture = block.LoadMixture(weights);
  const std::vector<float> x = RandomValues(tokens * kWidth, 3);
  const std::vector<float> computed = block.Compute(mixture, x);
  EXPECT_EQ(block.workspace().activations.routing().rows(0), 0);
  EXPECT_EQ(block.workspace().activations.routing().rows(1), tokens - kFeedForwardRows);
  EXPECT_TRUE(BitEqual(computed, Naive(weights, block, model, x)));
}

TEST(MixtureOfExpertsTest, CountsItsBytes) {
  const ModelDescription model = MixedModel(NormPlacement::kPost, false);
  MemoryWeights weights = RandomWeights(model, 1);
  Block block(model, {}, 16, 1);
  WeightLoader loader = block.LoaderOf(weights);
  const MixtureOfExperts mixture("layer.0.", model.layer, loader);
  ASSERT_TRUE(loader.status().ok()) << loader.status();
  int64_t floats = kMixture.experts * (kWidth + 1) + kWidth;
  const int64_t inner = model.layer.feed_forward.width;
  floats += kMixture.experts * (2 * kWidth * inner + kWidth + inner);
  EXPECT_GE(loader.kept_bytes(), floats * 4);
}

}  // namespace mixture_of_experts_test
}  // namespace attendant::test_support
