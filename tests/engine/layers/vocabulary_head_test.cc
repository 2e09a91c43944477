// Tests of the sparse vectors over the vocabulary, against float64 formulas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/engine_calls.h"
#include "tests/support/memory_weights.h"

namespace attendant::test_support {
namespace vocabulary_head_test {

using ::testing::Each;

constexpr int64_t kE = 32;

// A model with a head of another width than its own, and more words than the head takes at a time.
ModelDescription Model(VocabularyHeadShape head, int64_t words = 3500) {
  ModelDescription model = SmallModel(1, 2, kE / 2);
  model.embeddings = EmbeddingShape{.width = kE, .vocabulary = words, .norm_epsilon = 1e-12f};
  model.vocabulary_head = head;
  return model;
}

// The head of one token, in float64.
class Reference {
 public:
  Reference(const ModelDescription& model, const MemoryWeights::Tensors& tensors)
      : model_(model), tensors_(tensors) {}

  std::vector<double> Logits(const float* x) const {
    std::vector<double> dense = Linear("vocabulary_head.dense", std::vector<double>(x, x + kE));
    for (double& value : dense) {
      value = model_.vocabulary_head->activation == Activation::kRelu
                  ? std::max(value, 0.0)
                  : value * 0.5 * std::erfc(-value / std::sqrt(2.0));
    }
    const double width = static_cast<double>(dense.size());
    double mean = 0, variance = 0;
    for (const double value : dense) mean += value / width;
    for (const double value : dense) variance += (value - mean) * (value - mean) / width;
    const double scale = 1 / std::sqrt(variance + model_.layer.norms.epsilon);
    for (size_t j = 0; j < dense.size(); ++j) {
      dense[j] = (dense[j] - mean) * scale * tensors_.at("vocabulary_head.dense_norm.weight")[j] +
                 tensors_.at("vocabulary_head.dense_norm.bias")[j];
    }
    return Linear("vocabulary_head.output", dense);
  }

  std::vector<double> Vector(const Sequence& rows) const {
    const VocabularyHeadShape& head = *model_.vocabulary_head;
    std::vector<double> vector(model_.sparse_width(), 0.0);
    for (size_t first = 0; first < rows.size(); first += kE) {
      const std::vector<double> logits = Logits(rows.data() + first);
      for (size_t j = 0; j < logits.size(); ++j) {
        double weight = std::log1p(std::max(logits[j], 0.0));
        if (head.has_two_logarithms) weight = std::log1p(weight);
        vector[j] = head.takes_sums ? vector[j] + weight : std::max(vector[j], weight);
      }
    }
    return vector;
  }

 private:
  std::vector<double> Linear(const std::string& name, const std::vector<double>& x) const {
    const std::vector<float>& weight = tensors_.at(name + ".weight");
    const auto bias = tensors_.find(name + ".bias");
    std::vector<double> y(weight.size() / x.size());
    for (size_t i = 0; i < y.size(); ++i) {
      y[i] = bias == tensors_.end() ? 0.0 : bias->second[i];
      for (size_t j = 0; j < x.size(); ++j) y[i] += x[j] * weight[i * x.size() + j];
    }
    return y;
  }

  const ModelDescription& model_;
  const MemoryWeights::Tensors& tensors_;
};

// Weighs sequences that lie back to back.
std::vector<Sequence> Weigh(const std::shared_ptr<const Encoder>& encoder,
                            const std::vector<Sequence>& sequences, int threads = 2) {
  EncoderRun run(encoder, 1024, threads);
  FillInput(sequences, run);
  std::vector<Sequence> vectors(sequences.size(),
                                Sequence(encoder->description().sparse_width(), 7.0f));
  std::vector<VocabularySequence> places;
  int64_t first = 0;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const int64_t rows = static_cast<int64_t>(sequences[i].size()) / kE;
    places.push_back({first, rows, absl::MakeSpan(vectors[i])});
    first += rows;
  }
  run.WeighVocabulary(run.input(), places);
  return vectors;
}

void ExpectNear(const Sequence& actual, const std::vector<double>& expected, double bound) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t j = 0; j < actual.size(); ++j) ASSERT_NEAR(actual[j], expected[j], bound) << j;
}

class VocabularyHeadTest : public ::testing::TestWithParam<VocabularyHeadShape> {};

TEST_P(VocabularyHeadTest, IsThatOfFloat64) {
  const ModelDescription model = Model(GetParam());
  MemoryWeights weights = RandomWeights(model, 5);
  const auto encoder = LoadEncoder(model, weights);
  // Together more rows than the head takes at a time; two of them are cut where a block ends.
  const std::vector<Sequence> sequences = RandomSequences({7, 300, 1, 0, 250, 16}, kE, 3);
  const std::vector<Sequence> vectors = Weigh(encoder, sequences);
  const Reference reference(model, weights.tensors());
  for (size_t i = 0; i < sequences.size(); ++i) {
    ExpectNear(vectors[i], reference.Vector(sequences[i]), GetParam().takes_sums ? 2e-4 : 1e-5);
  }
  EXPECT_THAT(vectors[3], Each(0.0f));
}

INSTANTIATE_TEST_SUITE_P(Shapes, VocabularyHeadTest,
                         ::testing::Values(VocabularyHeadShape{.width = 48},
                                           VocabularyHeadShape{.width = 48,
                                                               .has_two_logarithms = true},
                                           VocabularyHeadShape{.width = 16, .takes_sums = true},
                                           VocabularyHeadShape{.width = kE,
                                                               .activation = Activation::kRelu,
                                                               .takes_sums = true,
                                                               .has_two_logarithms = true}));

TEST(VocabularyHeadInvarianceTest, AVectorHasTheSameBitsInAnyBatch) {
  for (const bool takes_sums : {false, true}) {
    const ModelDescription model = Model({.width = 48, .takes_sums = takes_sums});
    MemoryWeights weights = RandomWeights(model, 5);
    for (const ComputeMode& mode : ModesOfThisCpu()) {
      const auto encoder = LoadEncoder(model, weights, mode);
      // Blocks of 256 rows end in the second one and in the last one, which is longer than a block.
      const std::vector<Sequence> sequences = RandomSequences({250, 30, 9, 1, 300}, kE, 3);
      const std::vector<Sequence> together = Weigh(encoder, sequences);
      for (size_t i = 0; i < sequences.size(); ++i) {
        EXPECT_TRUE(BitEqual(Weigh(encoder, {sequences[i]}, 1).front(), together[i]))
            << i << " of " << (takes_sums ? "sums" : "maxima");
      }
    }
  }
}

TEST(VocabularyHeadTest, IsCloseInEveryComputeType) {
  const ModelDescription model = Model({.width = 64}, 700);
  MemoryWeights weights = RandomWeights(model, 5);
  const std::vector<Sequence> sequences = RandomSequences({40}, kE, 3);
  const std::vector<double> exact = Reference(model, weights.tensors()).Vector(sequences[0]);
  for (const ComputeMode& mode : ModesOfThisCpu()) {
    const double bound = mode.type == ComputeType::kInt8   ? 0.1
                         : mode.type == ComputeType::kBf16 ? 0.05
                                                           : 5e-5;
    ExpectNear(Weigh(LoadEncoder(model, weights, mode), sequences)[0], exact, bound);
  }
}

TEST(VocabularyHeadTest, KeepsNan) {
  const ModelDescription model = Model({.width = 16}, 20);
  MemoryWeights weights = RandomWeights(model, 5);
  const auto encoder = LoadEncoder(model, weights);
  std::vector<Sequence> sequences = RandomSequences({3, 3}, kE, 3);
  sequences[0][kE + 4] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<Sequence> vectors = Weigh(encoder, sequences);
  for (const float weight : vectors[0]) EXPECT_TRUE(std::isnan(weight));
  for (const float weight : vectors[1]) EXPECT_FALSE(std::isnan(weight));
}

TEST(VocabularyHeadTest, TakesNoMoreMemoryThanPredicted) {
  const ModelDescription model = Model({.width = 48});
  MemoryWeights weights = RandomWeights(model, 5);
  ExpectPredictedMemory(model, weights);
}

TEST(VocabularyHeadTest, NeedsEmbeddingsAndAWidth) {
  ModelDescription model = Model({.width = 0});
  EXPECT_EQ(Encoder::PredictLoadBytes(model).status().message(),
            "model description: vocabulary_head: expected a positive width in a model with "
            "embeddings; got 0");
  model.vocabulary_head->width = 8;
  model.embeddings.reset();
  EXPECT_EQ(Encoder::PredictLoadBytes(model).status().message(),
            "model description: vocabulary_head: expected a positive width in a model with "
            "embeddings; got 8 without embeddings");
}

}  // namespace vocabulary_head_test
}  // namespace attendant::test_support
