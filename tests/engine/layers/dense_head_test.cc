// Tests of the heads of linear layers and of the sparse vectors of a lexical head, against float64
// formulas.
#include "engine/layers/dense_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/allocation_counter.h"
#include "tests/support/engine_calls.h"
#include "tests/support/memory_weights.h"

namespace attendant::test_support {
namespace dense_head_test {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr int64_t kE = 48, kWords = 40;

ModelDescription Headed() {
  ModelDescription model = SmallModel(1, 3, kE / 3);
  model.pooling = {.modes = {PoolingMode::kFirstToken, PoolingMode::kMean},
                   .dense_width = 200,
                   .dense_activation = Activation::kTanh,
                   .dense_residual = Residual::kProjection,
                   .normalize = true,
                   .further_dense = {{200, Activation::kTanh, Residual::kInput}, {33}}};
  model.classifier = {.modes = {PoolingMode::kFirstToken},
                      .dense_width = kE,
                      .dense_activation = Activation::kRelu,
                      .output_width = 2};
  model.token_head = {
      .modes = {}, .dense_width = kE, .dense_residual = Residual::kInput, .normalize = true};
  return model;
}

std::vector<double> Linear(const MemoryWeights::Tensors& tensors, const std::string& name,
                           const std::vector<double>& x) {
  const std::vector<float>& weight = tensors.at(name + ".weight");
  std::vector<double> y(weight.size() / x.size());
  const auto bias = tensors.find(name + ".bias");
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = bias == tensors.end() ? 0 : bias->second[i];
    for (size_t j = 0; j < x.size(); ++j) y[i] += x[j] * weight[i * x.size() + j];
  }
  return y;
}

// A linear layer with its activation and its residual.
std::vector<double> Dense(const MemoryWeights::Tensors& tensors, const std::string& name,
                          const DenseShape& shape, const std::vector<double>& x) {
  std::vector<double> y = Linear(tensors, name, x);
  std::vector<double> residual(y.size());
  if (shape.residual == Residual::kInput) residual = x;
  if (shape.residual == Residual::kProjection) residual = Linear(tensors, name + ".residual", x);
  for (size_t i = 0; i < y.size(); ++i) {
    if (shape.activation == Activation::kTanh) y[i] = std::tanh(y[i]);
    if (shape.activation == Activation::kRelu) y[i] = std::max(y[i], 0.0);
    y[i] += residual[i];
  }
  return y;
}

// The head of one vector, in float64.
std::vector<double> Exact(const DenseHeadShape& head, const MemoryWeights::Tensors& tensors,
                          const Sequence& row) {
  const std::string name = Name(head.kind);
  std::vector<double> x =
      Dense(tensors, name + ".dense", head.shape->first_dense(), {row.begin(), row.end()});
  if (head.shape->output_width > 0) x = Linear(tensors, name + ".output", x);
  for (size_t i = 0; i < head.shape->further_dense.size(); ++i) {
    x = Dense(tensors, absl::StrCat(name, ".further.", i), head.shape->further_dense[i], x);
  }
  double squares = 0;
  for (const double value : x) squares += value * value;
  for (double& value : x) value /= head.shape->normalize ? std::sqrt(squares) : 1;
  return x;
}

// Together more rows than a head takes at a time.
std::vector<Sequence> RowsFor(const PoolingDescription& shape) {
  const std::vector<int64_t> ones(300, 1);
  return RandomSequences(ones, shape.input_width(kE), 3);
}

TEST(DenseHeadTest, IsThatOfFloat64InEveryComputeType) {
  const ModelDescription model = Headed();
  MemoryWeights weights = RandomWeights(model, 5);
  for (const ComputeMode& mode : ModesOfThisCpu()) {
    EncoderRun run(LoadEncoder(model, weights, mode), 512, 2);
    for (const DenseHeadShape& head : model.dense_heads()) {
      const std::vector<Sequence> rows = RowsFor(*head.shape);
      const std::vector<Sequence> made = ApplyHead(run, head.kind, rows);
      for (size_t i = 0; i < rows.size(); ++i) {
        const std::vector<double> exact = Exact(head, weights.tensors(), rows[i]);
        ASSERT_EQ(made[i].size(), exact.size());
        for (size_t j = 0; j < exact.size(); ++j) ASSERT_NEAR(made[i][j], exact[j], 5e-6);
      }
    }
  }
}

TEST(DenseHeadTest, AVectorHasTheSameBitsInAnyBatch) {
  const ModelDescription model = Headed();
  MemoryWeights weights = RandomWeights(model, 5);
  const auto encoder = LoadEncoder(model, weights);
  EncoderRun run(encoder, 512, 2), small(encoder, 1, 1);
  for (const DenseHeadShape& head : model.dense_heads()) {
    const std::vector<Sequence> rows = RowsFor(*head.shape);
    const std::vector<Sequence> together = ApplyHead(run, head.kind, rows);
    for (const size_t i : {0, 17, 255, 256, 299}) {
      EXPECT_TRUE(BitEqual(ApplyHead(small, head.kind, {rows[i]}).front(), together[i])) << i;
    }
  }
}

TEST(DenseHeadTest, AllocatesNothing) {
  const ModelDescription model = Headed();
  MemoryWeights weights = RandomWeights(model, 5);
  EncoderRun run(LoadEncoder(model, weights), 512, 2);
  const std::vector<DenseHeadShape> heads = model.dense_heads();
  const auto apply = [&](int64_t rows) {
    for (const DenseHeadShape& head : heads) {
      run.ApplyHead(
          head.kind, rows,
          [](int64_t, absl::Span<float> input) { std::fill(input.begin(), input.end(), 0.5f); },
          [](int64_t, absl::Span<float>) {});
    }
  };
  apply(300);
  const AllocationCounter allocations;
  apply(300);
  apply(3);
  EXPECT_EQ(allocations.count(), 0);
}

TEST(DenseHeadTest, TakesNoMoreMemoryThanPredicted) {
  const ModelDescription model = Headed();
  MemoryWeights weights = RandomWeights(model, 5);
  ExpectPredictedMemory(model, weights);
}

TEST(DenseHeadTest, NoHeadLeavesVectorsAsTheyAre) {
  ModelDescription model = SmallModel(1, 3, kE / 3);
  MemoryWeights weights = RandomWeights(model, 5);
  EncoderRun run(LoadEncoder(model, weights), 16, 2);
  const std::vector<Sequence> rows = RandomSequences({1, 1, 1}, kE, 3);
  EXPECT_EQ(ApplyHead(run, HeadKind::kNone, rows), rows);
}

// Ids 3 and 5 weigh nothing.
ModelDescription Lexical() {
  ModelDescription model = SmallModel(1, 3, kE / 3);
  model.embeddings = EmbeddingShape{.width = kE, .vocabulary = kWords, .norm_epsilon = 1e-12f};
  model.lexical_head = {
      .modes = {}, .dense_width = 1, .dense_activation = Activation::kRelu, .excluded_ids = {3, 5}};
  return model;
}

class LexicalHeadTest : public ::testing::Test {
 protected:
  static std::vector<int32_t> IdsOf(size_t sequence, int64_t rows) {
    std::vector<int32_t> ids;
    for (int64_t r = 0; r < rows; ++r) {
      ids.push_back(static_cast<int32_t>((r * 7 + static_cast<int64_t>(sequence)) % kWords));
    }
    return ids;
  }

  // Weighs sequences that lie back to back; `first` is the number of the first one.
  std::vector<Sequence> Weigh(const std::vector<Sequence>& sequences, size_t first = 0,
                              int threads = 2) {
    EncoderRun run(encoder_, 1024, threads);
    FillInput(sequences, run);
    std::vector<Sequence> vectors(sequences.size(), Sequence(kWords, 7.0f));
    std::vector<std::vector<int32_t>> ids;
    for (size_t i = 0; i < sequences.size(); ++i) {
      ids.push_back(IdsOf(first + i, static_cast<int64_t>(sequences[i].size()) / kE));
    }
    std::vector<VocabularySequence> places;
    int64_t row = 0;
    for (size_t i = 0; i < sequences.size(); ++i) {
      const auto rows = static_cast<int64_t>(ids[i].size());
      places.push_back({row, rows, absl::MakeSpan(vectors[i]), ids[i]});
      row += rows;
    }
    run.WeighVocabulary(run.input(), places);
    return vectors;
  }

  const ModelDescription model_ = Lexical();
  MemoryWeights weights_ = RandomWeights(model_, 5);
  const std::shared_ptr<const Encoder> encoder_ = LoadEncoder(model_, weights_);
};

TEST_F(LexicalHeadTest, AWordWeighsAsMuchAsTheBestOfItsTokens) {
  const std::vector<Sequence> sequences = RandomSequences({9, 300, 1, 0, 250, 16}, kE, 3);
  const std::vector<Sequence> vectors = Weigh(sequences);
  for (size_t i = 0; i < sequences.size(); ++i) {
    std::vector<double> exact(kWords, 0.0);
    const std::vector<int32_t> ids = IdsOf(i, static_cast<int64_t>(sequences[i].size()) / kE);
    for (size_t r = 0; r < ids.size(); ++r) {
      const float* row = sequences[i].data() + r * kE;
      const double weight = Linear(weights_.tensors(), "lexical_head.dense", {row, row + kE})[0];
      if (ids[r] != 3 && ids[r] != 5) exact[ids[r]] = std::max(exact[ids[r]], weight);
    }
    for (int64_t j = 0; j < kWords; ++j) ASSERT_NEAR(vectors[i][j], exact[j], 5e-6) << i;
  }
  EXPECT_THAT(vectors[3], Each(0.0f));
}

TEST_F(LexicalHeadTest, AVectorHasTheSameBitsInAnyBatch) {
  const std::vector<Sequence> sequences = RandomSequences({250, 30, 9, 1, 300}, kE, 3);
  const std::vector<Sequence> together = Weigh(sequences);
  for (size_t i = 0; i < sequences.size(); ++i) {
    EXPECT_TRUE(BitEqual(Weigh({sequences[i]}, i, 1).front(), together[i])) << i;
  }
}

TEST_F(LexicalHeadTest, KeepsNan) {
  std::vector<Sequence> sequences = RandomSequences({3, 3}, kE, 3);
  sequences[0][kE + 4] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<Sequence> vectors = Weigh(sequences);
  std::vector<int32_t> lost;
  for (size_t i = 0; i < 2; ++i) {
    for (int32_t j = 0; j < kWords; ++j) {
      if (std::isnan(vectors[i][static_cast<size_t>(j)])) lost.push_back(j);
    }
  }
  EXPECT_THAT(lost, ElementsAre(7));
}

TEST_F(LexicalHeadTest, NeedsEmbeddingsAndOneNumberForEachToken) {
  const auto refusal = [](const ModelDescription& model) {
    return std::string(Encoder::PredictLoadBytes(model).status().message());
  };
  const std::string expected =
      "model description: lexical_head: expected width 1 in a model with embeddings and without an "
      "MLM head; got ";
  ModelDescription model = Lexical();
  model.lexical_head->dense_width = 2;
  EXPECT_EQ(refusal(model), expected + "2");
  model = Lexical();
  model.embeddings.reset();
  EXPECT_EQ(refusal(model), expected + "1 without embeddings");
  model = Lexical();
  model.vocabulary_head = VocabularyHeadShape{.width = 8};
  EXPECT_EQ(refusal(model), expected + "1 with an MLM head");
  model = Lexical();
  model.lexical_head->modes = {PoolingMode::kMean};
  EXPECT_EQ(refusal(model), "model description: lexical_head: expected 0 pooling modes; got 1");
}

}  // namespace dense_head_test
}  // namespace attendant::test_support
