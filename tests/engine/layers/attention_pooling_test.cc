// Tests of pooling by a learned query, with the head that follows it, against the formulas of
// torch's attention in float64.
#include "engine/layers/attention_pooling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/allocation_counter.h"
#include "tests/support/engine_calls.h"
#include "tests/support/memory_weights.h"

namespace attendant::test_support {
namespace attention_pooling_test {

using ::testing::Each;

constexpr int64_t kHeads = 3, kWidth = 17, kE = kHeads * kWidth, kInner = 70;
using Row = std::vector<double>;

ModelDescription Attending() {
  ModelDescription model = SmallModel(1, kHeads, kWidth);
  model.pooling = {.modes = {PoolingMode::kAttention},
                   .dense_width = kE,
                   .block = {kInner, Activation::kGeluTanh}};
  return model;
}

// A query that scores rows very differently.
MemoryWeights Weights() {
  MemoryWeights weights = RandomWeights(Attending(), 5);
  for (float& value : weights.tensors()["pooling.probe"]) value *= 20;
  return weights;
}

Row Linear(const MemoryWeights::Tensors& tensors, const std::string& name, const Row& x) {
  const std::vector<float>& weight = tensors.at(name + ".weight");
  Row y(weight.size() / x.size());
  for (size_t i = 0; i < y.size(); ++i) {
    const auto bias = tensors.find(name + ".bias");
    y[i] = bias == tensors.end() ? 0 : bias->second[i];
    for (size_t j = 0; j < x.size(); ++j) y[i] += x[j] * weight[i * x.size() + j];
  }
  return y;
}

// The attention of the probe to the rows.
Row Attend(const MemoryWeights::Tensors& tensors, const std::vector<Row>& rows) {
  const std::vector<float>& probe = tensors.at("pooling.probe");
  const Row query = Linear(tensors, "pooling.query", {probe.begin(), probe.end()});
  Row context(kE);
  for (int64_t head = 0; head < kHeads; ++head) {
    Row weights;
    double total = 0;
    for (const Row& row : rows) {
      const Row key = Linear(tensors, "pooling.key", row);
      double score = 0;
      for (int64_t i = head * kWidth; i < (head + 1) * kWidth; ++i) score += query[i] * key[i];
      weights.push_back(std::exp(score / std::sqrt(double{kWidth})));
      total += weights.back();
    }
    for (size_t r = 0; r < rows.size(); ++r) {
      const Row value = Linear(tensors, "pooling.value", rows[r]);
      for (int64_t i = head * kWidth; i < (head + 1) * kWidth; ++i) {
        context[i] += weights[r] / total * value[i];
      }
    }
  }
  return context;
}

// x + W2 gelu(W1 norm(x)).
Row Block(const MemoryWeights::Tensors& tensors, Row x) {
  double mean = 0, variance = 0;
  for (const double value : x) mean += value / double{kE};
  for (const double value : x) variance += (value - mean) * (value - mean) / double{kE};
  Row normed(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    normed[i] =
        (x[i] - mean) / std::sqrt(variance + 1e-5) * tensors.at("pooling.block_norm.weight")[i] +
        tensors.at("pooling.block_norm.bias")[i];
  }
  Row inner = Linear(tensors, "pooling.block_in", normed);
  for (double& value : inner) {
    value *= 0.5 * (1 + std::tanh(std::sqrt(2 / M_PI) * (value + 0.044715 * std::pow(value, 3))));
  }
  const Row added = Linear(tensors, "pooling.block_out", inner);
  for (size_t i = 0; i < x.size(); ++i) x[i] += added[i];
  return x;
}

Row Exact(const MemoryWeights::Tensors& tensors, const Sequence& sequence) {
  std::vector<Row> rows;
  for (auto at = sequence.begin(); at != sequence.end(); at += kE) rows.emplace_back(at, at + kE);
  return Block(tensors, Linear(tensors, "pooling.dense", Attend(tensors, rows)));
}

Sequence PoolOf(const Encoder& encoder, const Sequence& sequence) {
  Sequence pooled(kE, 7.0f);
  const auto rows = static_cast<int64_t>(sequence.size()) / kE;
  encoder.Pool(HeadKind::kPooling, {sequence.data(), rows, kE, kE}, {}, absl::MakeSpan(pooled));
  return pooled;
}

void ExpectExact(MemoryWeights& weights, const ComputeMode& mode) {
  const auto encoder = LoadEncoder(Attending(), weights, mode);
  EncoderRun run(encoder, 512, 2);
  const std::vector<Sequence> sequences = RandomSequences({1, 2, 9, 64, 300}, kE, 3);
  std::vector<Sequence> pooled;
  for (const Sequence& sequence : sequences) pooled.push_back(PoolOf(*encoder, sequence));
  const std::vector<Sequence> made = ApplyHead(run, HeadKind::kPooling, pooled);
  for (size_t i = 0; i < sequences.size(); ++i) {
    const Row exact = Exact(weights.tensors(), sequences[i]);
    ASSERT_EQ(made[i].size(), exact.size());
    for (size_t j = 0; j < exact.size(); ++j) {
      ASSERT_NEAR(made[i][j], exact[j], 5e-6 * std::max(1.0, std::abs(exact[j]))) << i;
    }
  }
}

TEST(AttentionPoolingTest, IsThatOfFloat64InEveryComputeType) {
  MemoryWeights weights = Weights();
  for (const ComputeMode& mode : ModesOfThisCpu()) ExpectExact(weights, mode);
}

TEST(AttentionPoolingTest, MayHaveNoBiases) {
  MemoryWeights weights = Weights();
  for (const char* name : {"query", "key", "value"}) {
    ASSERT_EQ(weights.tensors().erase(absl::StrCat("pooling.", name, ".bias")), 1u);
  }
  ExpectExact(weights, {});
}

TEST(AttentionPoolingTest, GivesZerosForNoRow) {
  MemoryWeights weights = Weights();
  EXPECT_THAT(PoolOf(*LoadEncoder(Attending(), weights), {}), Each(0.0f));
}

TEST(AttentionPoolingTest, KeepsNan) {
  MemoryWeights weights = Weights();
  const auto encoder = LoadEncoder(Attending(), weights);
  for (const size_t at : {size_t{0}, size_t{2 * kE + 5}}) {
    Sequence sequence = RandomSequences({4}, kE, 3).front();
    sequence[at] = std::numeric_limits<float>::quiet_NaN();
    const Sequence pooled = PoolOf(*encoder, sequence);
    EXPECT_TRUE(std::all_of(pooled.begin(), pooled.end(), [](float x) { return std::isnan(x); }));
  }
}

TEST(AttentionPoolingTest, AllocatesNothing) {
  MemoryWeights weights = Weights();
  const auto encoder = LoadEncoder(Attending(), weights);
  EncoderRun run(encoder, 512, 2);
  const Sequence sequence = RandomSequences({9}, kE, 3).front();
  const auto apply = [&](int64_t rows) {
    run.ApplyHead(
        HeadKind::kPooling, rows,
        [&](int64_t, absl::Span<float> input) {
          encoder->Pool(HeadKind::kPooling, {sequence.data(), 9, kE, kE}, {}, input);
        },
        [](int64_t, absl::Span<float>) {});
  };
  apply(300);
  const AllocationCounter allocations;
  apply(300);
  apply(3);
  EXPECT_EQ(allocations.count(), 0);
}

TEST(AttentionPoolingTest, TakesNoMoreMemoryThanPredicted) {
  MemoryWeights weights = Weights();
  ExpectPredictedMemory(Attending(), weights);
}

TEST(AttentionPoolingTest, StandsAloneBeforeALinearLayer) {
  const auto refusal = [](const ModelDescription& model) {
    return std::string(Encoder::PredictLoadBytes(model).status().message());
  };
  const std::string expected =
      "model description: attention pooling: expected the only mode of a pooling with a dense "
      "layer, and heads that divide hidden_size 51; got ";
  ModelDescription model = Attending();
  model.pooling->modes.push_back(PoolingMode::kMean);
  EXPECT_EQ(refusal(model), expected + "2 modes of pooling, dense_width 51 and 3 heads");
  model = Attending();
  std::swap(model.pooling, model.classifier);
  EXPECT_EQ(refusal(model), expected + "1 modes of classifier, dense_width 51 and 3 heads");
  model = Attending();
  model.pooling->block = {};
  model.pooling->dense_width = 0;
  EXPECT_EQ(refusal(model), expected + "1 modes of pooling, dense_width 0 and 3 heads");
}

TEST(HeadBlockTest, NeedsAPositiveWidthAndALinearLayer) {
  const auto refusal = [](const DenseShape& block, int64_t dense_width) {
    ModelDescription model = SmallModel(1, kHeads, kWidth);
    model.pooling = {.modes = {PoolingMode::kMean}, .dense_width = dense_width, .block = block};
    return std::string(Encoder::PredictLoadBytes(model).status().message());
  };
  const std::string expected =
      "model description: pooling: expected a feed-forward block of positive width after a dense "
      "layer; got width ";
  EXPECT_EQ(refusal({-1}, 8), expected + "-1 after dense_width 8");
  EXPECT_EQ(refusal({4}, 0), expected + "4 after dense_width 0");
  EXPECT_EQ(refusal({4}, 8), "");
}

}  // namespace attention_pooling_test
}  // namespace attendant::test_support
