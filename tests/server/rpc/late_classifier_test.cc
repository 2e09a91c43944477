// Tests of heads that score the classes of each token, whose mean is that of the sequence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/server/support/encode_calls.h"
#include "tests/server/support/test_server.h"
#include "tests/server/support/wire_tensors.h"
#include "tests/support/memory_weights.h"

namespace attendant::server {
namespace late_classifier_test {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr int64_t kClasses = 3, kInner = 5;

ModelDescription Description() {
  ModelDescription model = TestModels().at("tiny")->encoder->description();
  model.classifier = {.modes = {PoolingMode::kLateMean},
                      .dense_width = kInner,
                      .dense_activation = Activation::kTanh,
                      .output_width = kClasses};
  return model;
}

TestServerOptions Serving() {
  TestServerOptions options;
  options.models = ModelOf("late", Description());
  return options;
}

class LateClassifierTest : public ::testing::Test {
 protected:
  v1::EncodeResponse Encode(const std::vector<int64_t>& lengths, bool normalize = false) {
    v1::EncodeRequest request;
    request.set_model("late");
    const auto sequences = static_cast<int64_t>(lengths.size());
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < 4 * sequences; ++i) ids.push_back(5 + i);
    *request.mutable_token_ids() = IntegerTensor({sequences, 4}, ids);
    for (const int64_t length : lengths) request.add_lengths(length);
    request.set_return_pooled(true);
    request.set_pooling(v1::CLASSIFIER);
    request.set_normalize_pooled(normalize);
    return EncodeOk(server_, request);
  }

  std::vector<double> Linear(const std::string& name, const std::vector<double>& x) {
    const std::vector<float>& weight = weights_.tensors().at(name + ".weight");
    const std::vector<float>& bias = weights_.tensors().at(name + ".bias");
    std::vector<double> y(bias.begin(), bias.end());
    for (size_t i = 0; i < y.size(); ++i) {
      for (size_t j = 0; j < x.size(); ++j) y[i] += double{weight[i * x.size() + j]} * x[j];
    }
    return y;
  }

  // In float64, of the hidden states of a sequence's tokens.
  std::vector<double> Exact(const float* rows, int64_t tokens) {
    std::vector<double> mean(kClasses);
    const int64_t width = Description().layer.hidden_size;
    for (int64_t t = 0; t < tokens; ++t) {
      std::vector<double> inner =
          Linear("classifier.dense", {rows + t * width, rows + (t + 1) * width});
      for (double& element : inner) element = std::tanh(element);
      const std::vector<double> scores = Linear("classifier.output", inner);
      for (size_t c = 0; c < mean.size(); ++c) {
        mean[c] += scores[c] / static_cast<double>(tokens);
      }
    }
    return mean;
  }

  TestServer server_{Serving()};
  test_support::MemoryWeights weights_ = test_support::RandomWeights(Description(), 9);
};

TEST_F(LateClassifierTest, AnswersTheMeanOfTheTokensScores) {
  const v1::EncodeResponse response = Encode({4, 1, 3});
  EXPECT_THAT(response.pooled().shape(), ElementsAre(3, kClasses));
  const std::vector<float> rows = ToFloats(response.hidden_states());
  const std::vector<float> scores = ToFloats(response.pooled());
  const int64_t stride = 4 * Description().layer.hidden_size;
  for (const auto& [sequence, tokens] : {std::pair{0, 4}, {1, 1}, {2, 3}}) {
    const std::vector<double> exact = Exact(rows.data() + sequence * stride, tokens);
    for (int64_t c = 0; c < kClasses; ++c) {
      EXPECT_NEAR(scores[static_cast<size_t>(sequence * kClasses + c)],
                  exact[static_cast<size_t>(c)], 2e-6);
    }
  }
}

TEST_F(LateClassifierTest, ASequenceHasTheSameBitsInAnyBatch) {
  const std::vector<float> together = ToFloats(Encode({4, 2}).pooled());
  const std::vector<float> alone = ToFloats(Encode({4}).pooled());
  EXPECT_EQ(std::vector<float>(together.begin(), together.begin() + kClasses), alone);
}

TEST_F(LateClassifierTest, ScalesTheMean) {
  const std::vector<float> plain = ToFloats(Encode({3}).pooled());
  const std::vector<float> scaled = ToFloats(Encode({3}, true).pooled());
  double squares = 0;
  for (const float score : plain) squares += double{score} * score;
  for (size_t c = 0; c < kClasses; ++c) {
    EXPECT_NEAR(scaled[c], plain[c] / std::sqrt(squares), 1e-6);
  }
}

TEST_F(LateClassifierTest, ASequenceWithoutTokensScoresZeros) {
  const std::vector<float> scores = ToFloats(Encode({3, 0}).pooled());
  EXPECT_THAT(std::vector<float>(scores.begin() + kClasses, scores.end()), Each(0.0f));
}

}  // namespace late_classifier_test
}  // namespace attendant::server
