// Tests of kinds of attention from articles, from a folder with attendant.json to the answer.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/files/json.h"
#include "tests/engine/checkpoint/model_files.h"
#include "tests/support/engine_calls.h"
#include "tests/support/test_vectors.h"

namespace attendant::test_support {
namespace attention_kinds_test {

TestTensor Generated(const std::string& name, std::vector<int64_t> shape, int64_t seed) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return {name, std::move(shape), "F32", attendant::Encode(Generate(count, seed), "F32")};
}

class AttentionKindsTest : public ::testing::Test {
 protected:
  void Load(Json description, const std::vector<TestTensor>& tensors) {
    const Json common = {{"module", "attention"},
                         {"file", "m.safetensors"},
                         {"weight_layout", "out_in"},
                         {"query", "q"},
                         {"key", "k"},
                         {"value", "v"}};
    description.update(common);
    folder_.Write("attendant.json", description.dump());
    folder_.Write("m.safetensors", MakeSafetensors(tensors));
    absl::StatusOr<Checkpoint> opened = OpenCheckpoint(folder_.path(), {});
    ASSERT_TRUE(opened.ok()) << opened.status();
    description_ = opened->description;
    encoder_ = LoadEncoder(opened->description, *opened->weights);
  }

  // Returns the context layer of sequences of `length` rows.
  std::vector<float> Context(const std::vector<float>& hidden_states, int32_t length) {
    const int64_t width = description_.layer.hidden_size;
    const auto rows = static_cast<int32_t>(hidden_states.size() / width);
    EncoderRun run(encoder_, rows, 2);
    std::copy(hidden_states.begin(), hidden_states.end(), run.input().data);
    std::vector<int32_t> bounds;
    for (int32_t row = 0; row <= rows; row += length) bounds.push_back(row);
    RunObserver nobody;
    const auto context =
        run.Attend(0, AttendStage::kContext, {.cu_seqlens = bounds, .bias = {}}, nobody);
    EXPECT_TRUE(context.ok()) << context.status();
    return {context->data, context->data + rows * context->cols};
  }

  static void ExpectVector(const std::vector<float>& answer, const std::vector<double>& first_row,
                           double sum, double sum_of_squares) {
    for (size_t j = 0; j < first_row.size(); ++j) EXPECT_NEAR(answer[j], first_row[j], 2e-6);
    double total = 0, squares = 0;
    for (const double element : answer) {
      total += element;
      squares += element * element;
    }
    EXPECT_NEAR(total, sum, 1e-5);
    EXPECT_NEAR(squares, sum_of_squares, 1e-4);
  }

  TempFolder folder_;
  ModelDescription description_;
  std::shared_ptr<const Encoder> encoder_;
};

// TV12: heads mix the columns of queries and keys that all of them share.
TEST_F(AttentionKindsTest, CollaborativeHeads) {
  Load({{"num_heads", 2}, {"mixing", "m"}, {"content_bias", "c"}},
       {Generated("q", {3, 4}, 2), Generated("k", {3, 4}, 4), Generated("v.weight", {4, 4}, 6),
        Generated("v.bias", {4}, 7), Generated("m", {2, 3}, 8), Generated("c", {2, 4}, 9)});
  ExpectVector(Context(Generate(24, 1), 3), {1.05479450, .28463232, -.20063469, -.78708965},
               .10970195, 10.15520583);
}

// Heads that each take their own columns are ordinary heads.
TEST_F(AttentionKindsTest, CollaborativeHeadsWithBlocksForMixing) {
  std::vector<TestTensor> tensors = {Generated("q", {4, 4}, 2), Generated("k", {4, 4}, 4),
                                     Generated("v", {4, 4}, 6)};
  Load(Json::object({{"num_heads", 2}}), tensors);
  const std::vector<float> expected = Context(Generate(24, 1), 3);
  tensors.push_back({"m", {2, 4}, "F32", attendant::Encode({1, 1, 0, 0, 0, 0, 1, 1}, "F32")});
  Load({{"num_heads", 2}, {"mixing", "m"}}, tensors);
  const std::vector<float> actual = Context(Generate(24, 1), 3);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-6);
}

// TV16 and TV16b: neighbours only, and a token that sees all and that all see.
TEST_F(AttentionKindsTest, WindowsAndGlobalTokens) {
  const std::vector<TestTensor> tensors = {
      Generated("q.weight", {4, 4}, 2), Generated("q.bias", {4}, 3),
      Generated("k.weight", {4, 4}, 4), Generated("k.bias", {4}, 5),
      Generated("v.weight", {4, 4}, 6), Generated("v.bias", {4}, 7)};
  Load({{"num_heads", 2}, {"window", 1}}, tensors);
  ExpectVector(Context(Generate(32, 1), 8), {.54586354, 1.32362519, -.41496429, -.63355020},
               .30838212, 16.59708082);
  Load({{"num_heads", 2}, {"window", 1}, {"first_global", 1}}, tensors);
  ExpectVector(Context(Generate(32, 1), 8), {.77090998, .63178696, -.32282805, -.57930440},
               1.00628399, 14.24931741);
}

// TV14 and TV14b: a query reads what its own key has written.
TEST_F(AttentionKindsTest, LinearAttention) {
  const std::vector<TestTensor> tensors = {Generated("q", {4, 4}, 2), Generated("k", {4, 4}, 4),
                                           Generated("v", {4, 4}, 6)};
  Load({{"num_heads", 1}, {"attention", "causal_linear"}}, tensors);
  ExpectVector(Context(Generate(12, 1), 3), {.70875659, -.80481547, 1.05625680, .08503829},
               2.19691919, 69.79318199);
  Load({{"num_heads", 1}, {"attention", "linear"}}, tensors);
  ExpectVector(Context(Generate(12, 1), 3), {1.87257704, -2.87124935, 3.05036576, -.24140271},
               1.16099776, 136.94698302);
}

// TV13: two rows of keys and values for any number of tokens.
TEST_F(AttentionKindsTest, Linformer) {
  std::vector<TestTensor> tensors = {Generated("q", {4, 4}, 2), Generated("k", {4, 4}, 4),
                                     Generated("v", {4, 4}, 6), Generated("E", {2, 3}, 20),
                                     Generated("F", {2, 3}, 21)};
  const Json mixing = {{"attention", "linformer"}, {"key_mixing", "E"}, {"value_mixing", "F"}};
  Json description = mixing;
  description["num_heads"] = 1;
  Load(description, tensors);
  ExpectVector(Context(Generate(12, 1), 3), {.15008179, -.03119180, .35343990, -.21491994},
               1.19193582, 1.14890739);

  // More tokens than the mixing was trained for.
  EncoderRun run(encoder_, 4, 1);
  const std::vector<int32_t> bounds = {0, 4};
  RunObserver nobody;
  const absl::Status status =
      run.Attend(0, AttendStage::kContext, {.cu_seqlens = bounds, .bias = {}}, nobody).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "batch: expected sequences of at most 3 positions; got 4");
}

// Mixing by the identity leaves full attention.
TEST_F(AttentionKindsTest, LinformerOfOnesOnTheDiagonal) {
  std::vector<TestTensor> tensors = {Generated("q", {4, 4}, 2), Generated("k", {4, 4}, 4),
                                     Generated("v", {4, 4}, 6)};
  Load(Json::object({{"num_heads", 2}}), tensors);
  const std::vector<float> expected = Context(Generate(24, 1), 3);
  tensors.push_back({"E", {3, 3}, "F32", attendant::Encode({1, 0, 0, 0, 1, 0, 0, 0, 1}, "F32")});
  Load({{"num_heads", 2}, {"attention", "linformer"}, {"key_mixing", "E"}, {"value_mixing", "E"}},
       tensors);
  EXPECT_EQ(Context(Generate(24, 1), 3), expected);
}

// The formula, in float64.
TEST_F(AttentionKindsTest, AdditiveScores) {
  const std::vector<float> q = Generate(9, 3), k = Generate(9, 4), v = Generate(9, 5);
  const std::vector<float> w = Generate(3, 6), x = Generate(12, 1);
  Load({{"num_heads", 1}, {"attention", "additive"}, {"score", "w"}},
       {Generated("q", {3, 3}, 3), Generated("k", {3, 3}, 4), Generated("v", {3, 3}, 5),
        Generated("w", {3}, 6)});
  const std::vector<float> answer = Context(x, 4);
  const auto project = [&](const std::vector<float>& weight, int64_t row, int64_t column) {
    double sum = 0;
    for (int64_t j = 0; j < 3; ++j)
      sum += static_cast<double>(x[row * 3 + j]) * weight[column * 3 + j];
    return sum;
  };
  for (int64_t s = 0; s < 4; ++s) {
    double total = 0, mixed[3] = {};
    for (int64_t t = 0; t < 4; ++t) {
      double score = 0;
      for (int64_t j = 0; j < 3; ++j)
        score += w[j] * std::tanh(project(q, s, j) + project(k, t, j));
      total += std::exp(score);
      for (int64_t j = 0; j < 3; ++j) mixed[j] += std::exp(score) * project(v, t, j);
    }
    for (int64_t j = 0; j < 3; ++j) EXPECT_NEAR(answer[s * 3 + j], mixed[j] / total, 1e-6);
  }
}

// Linear attention refuses a bias and has no probabilities.
TEST_F(AttentionKindsTest, LinearAttentionHasNoScores) {
  class Wants : public RunObserver {
   public:
    float* ProbabilitiesTarget(int64_t, int64_t) override {
      ADD_FAILURE() << "asked for probabilities";
      return nullptr;
    }
  };
  Load({{"num_heads", 1}, {"attention", "linear"}},
       {Generated("q", {4, 4}, 2), Generated("k", {4, 4}, 4), Generated("v", {4, 4}, 6)});
  EncoderRun run(encoder_, 4, 1);
  std::fill_n(run.input().data, 16, 0.5f);
  const std::vector<int32_t> bounds = {0, 4};
  Wants observer;
  EXPECT_TRUE(
      run.Attend(0, AttendStage::kContext, {.cu_seqlens = bounds, .bias = {}}, observer).ok());
  const AttentionBias bias = {run.input().data, 0, 0, 0};
  const AttentionBias* const biases[] = {&bias};
  const absl::Status status =
      run.Attend(0, AttendStage::kContext, {.cu_seqlens = bounds, .bias = biases}, observer)
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "bias: not supported by this model: linear attention has no score per query and key");
}

}  // namespace attention_kinds_test
}  // namespace attendant::test_support
