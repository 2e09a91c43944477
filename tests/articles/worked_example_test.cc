// Tests of "Worked example": three inputs of four numbers, three weights of [4, 3] that are
// multiplied from the right, scores without a scale, no biases, no output projection.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/articles/article_server.h"

namespace attendant::articles {
namespace worked_example_test {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::vector<float> kInputs = {1, 0, 1, 0, 0, 2, 0, 2, 1, 1, 1, 1};

// The weights as printed: one row for each element of an input.
const std::vector<TestTensor> kWeights = {
    WithValues("w_query", {4, 3}, {1, 0, 1, 1, 0, 0, 0, 0, 1, 0, 1, 1}),
    WithValues("w_key", {4, 3}, {0, 0, 1, 1, 1, 0, 0, 1, 0, 1, 1, 0}),
    WithValues("w_value", {4, 3}, {0, 2, 0, 0, 3, 0, 1, 0, 3, 1, 1, 0})};

json Description() {
  return {{"module", "attention"}, {"file", "weights.safetensors"},
          {"num_heads", 1},        {"weight_layout", "in_out"},
          {"query", "w_query"},    {"key", "w_key"},
          {"value", "w_value"},    {"score_scale", 1}};
}

// F10, F12: the article's result before it rounds.
TEST(WorkedExample, GivesTheArticlesOutputs) {
  ArticleServer server(Description(), kWeights);
  const std::vector<float> output = server.Output(RequestOf({1, 3, 4}, kInputs));
  ExpectRow(output, 0, {1.936621062, 6.683105308, 1.595068407});
  ExpectRow(output, 1, {1.999993966, 7.963991595, .053976405});
  ExpectRow(output, 2, {1.999704613, 7.759892255, .358389295});
}

TEST(WorkedExample, IsServedWithoutAnyFile) {
  ArticleServer embedded("worked-example"), from_file(Description(), kWeights);
  const v1::AttendRequest request = RequestOf({1, 3, 4}, kInputs);
  EXPECT_EQ(embedded.Output(request), from_file.Output(request));
}

// The article prints softmax([2, 4, 4]) as 0, 0.5, 0.5; the server does not round.
TEST(WorkedExample, SoftmaxIsNotRounded) {
  ArticleServer server(Description(), kWeights);
  const std::vector<float> probabilities = server.Probabilities(RequestOf({1, 3, 4}, kInputs));
  ExpectRow(probabilities, 0, {6.337893833e-2, .4683105308, .4683105308});
  ExpectRow(probabilities, 1, {6.033664855e-6, .9820078649, 1.798610144e-2});
  ExpectRow(probabilities, 2, {2.953872230e-4, .8805369018, .1191677110});
}

// F14: each value times its score, [keys, queries, 3], before the sum.
TEST(WorkedExample, WeightedValuesAddUpToTheOutput) {
  ArticleServer server(Description(), kWeights);
  v1::AttendRequest request = RequestOf({1, 3, 4}, kInputs);
  request.set_return_weighted_values(true);
  const v1::AttendResponse response = server.Attend(request);
  EXPECT_EQ(server::ShapeOf(response.weighted_values()), (std::vector<int64_t>{1, 1, 3, 3, 3}));
  const std::vector<float> weighted = ToFloats(response.weighted_values());
  ExpectRow(weighted, 0, {6.337893833e-2, 2 * 6.337893833e-2, 3 * 6.337893833e-2});
  ExpectRow(weighted, 3, {2 * .4683105308, 8 * .4683105308, 0});
  ExpectRow(weighted, 6, {2 * .4683105308, 6 * .4683105308, 3 * .4683105308});
  std::vector<float> sum(9);
  for (size_t i = 0; i < weighted.size(); ++i) sum[i % 9] += weighted[i];
  EXPECT_LT(LargestDifference(sum, ToFloats(response.output())), kTolerance);
}

// F10: the scale is 1 / sqrt(3) unless the description says otherwise, as in the later articles.
TEST(WorkedExample, ScalesScoresByDefault) {
  json description = Description();
  description.erase("score_scale");
  ArticleServer server(description, kWeights);
  const std::vector<float> output = server.Output(RequestOf({1, 3, 4}, kInputs));
  ExpectRow(output, 0, {1.863874202, 6.319371012, 1.704188696});
  ExpectRow(output, 2, {1.992555108, 7.479635592, .735877258});
}

// F29: the other score that the article names, w . tanh(q + k), with the article's own queries,
// keys and values.
TEST(WorkedExample, ScoresMayBeAdditive) {
  constexpr double kQueries[3][3] = {{1, 0, 2}, {2, 2, 2}, {2, 1, 3}};
  constexpr double kKeys[3][3] = {{0, 1, 1}, {4, 4, 0}, {2, 3, 1}};
  constexpr double kValues[3][3] = {{1, 2, 3}, {2, 8, 0}, {2, 6, 3}};
  constexpr double kScore[3] = {1, -2, 0.5};
  json description = Description();
  description["attention"] = "additive";
  description["score"] = "w_score";
  std::vector<TestTensor> weights = kWeights;
  weights.push_back(WithValues("w_score", {3}, {1, -2, 0.5}));
  ArticleServer server(description, weights);
  const std::vector<float> output = server.Output(RequestOf({1, 3, 4}, kInputs));
  for (int s = 0; s < 3; ++s) {
    double sum = 0;
    std::vector<double> expected(3, 0.0);
    for (int t = 0; t < 3; ++t) {
      double score = 0;
      for (int j = 0; j < 3; ++j) score += kScore[j] * std::tanh(kQueries[s][j] + kKeys[t][j]);
      sum += std::exp(score);
      for (int j = 0; j < 3; ++j) expected[j] += std::exp(score) * kValues[t][j];
    }
    for (double& element : expected) element /= sum;
    ExpectRow(output, s, expected);
  }
}

// F10: attention as a look-up: a large scale leaves the value of the best key.
TEST(WorkedExample, ALargeScaleLooksUpTheBestKey) {
  json description = Description();
  description["score_scale"] = 1e4;
  ArticleServer server(description, kWeights);
  const std::vector<float> probabilities = server.Probabilities(RequestOf({1, 3, 4}, kInputs));
  ExpectRow(probabilities, 0, {0, .5, .5});  // two keys are equally good
  ExpectRow(probabilities, 1, {0, 1, 0});
  ExpectRow(probabilities, 2, {0, 1, 0});
}

// The extension that the article leaves to the reader: masking.
TEST(WorkedExample, AMaskedKeyTakesNoPart) {
  ArticleServer server(Description(), kWeights);
  v1::AttendRequest request = RequestOf({1, 3, 4}, kInputs);
  *request.mutable_attention_mask() = IntegerTensor({1, 3}, {1, 1, 0});
  const std::vector<float> output = server.Output(request);
  ExpectRow(output, 0, {1.880797078, 7.284782468, .357608766});
  ExpectRow(output, 2, {0, 0, 0});
}

// F15: values may be wider than the keys, and the output has their width.
TEST(WorkedExample, ValuesMayBeWiderThanKeys) {
  std::vector<TestTensor> weights = kWeights;
  weights[2] = Generated("w_value", {4, 5}, 5);
  ArticleServer server(Description(), weights);
  const v1::AttendResponse response = server.Attend(RequestOf({1, 3, 4}, kInputs));
  EXPECT_EQ(response.output().shape(2), 5);
}

// Adds `places` [2, 4] to two equal inputs: before sending them, and by the server itself.
void ExpectPlaces(const char* sinusoids, const std::vector<float>& places) {
  ArticleServer server(
      {{"module", "nn.TransformerEncoderLayer"},
       {"file", "weights.safetensors"},
       {"num_heads", 1},
       {"norm_first", false},
       {"activation", "relu"},
       {"layer_norm_eps", 1e-5},
       {"sinusoids", sinusoids},
       {"max_positions", 3}},
      {Generated("self_attn.in_proj_weight", {12, 4}, 20),
       Generated("self_attn.out_proj.weight", {4, 4}, 21), Generated("linear1.weight", {6, 4}, 22),
       Generated("linear2.weight", {4, 6}, 23), Generated("norm1.weight", {4}, 24),
       Generated("norm2.weight", {4}, 25)});
  std::vector<float> inputs = {1, 0, 1, 0, 1, 0, 1, 0};
  v1::EncodeRequest plain, placed;
  *plain.mutable_features() = FloatTensor({1, 2, 4}, inputs);
  for (size_t i = 0; i < inputs.size(); ++i) inputs[i] += places[i];
  *placed.mutable_hidden_states() = FloatTensor({1, 2, 4}, inputs);
  const std::vector<float> answer = server.Encoded(plain);
  EXPECT_LE(LargestDifference(answer, server.Encoded(placed)), kTolerance);
  // An input gives another answer in another place.
  EXPECT_GT(LargestDifference(server::Rows(answer, 4, 0, 1), server::Rows(answer, 4, 1, 1)), 1e-3);
}

// F48: positions are sines and cosines, alternating or all sines first.
TEST(WorkedExample, SinusoidsTellPlaces) {
  ExpectPlaces("interleaved", {0, 1, 0, 1, .84147098f, .54030231f, .00999983f, .99995000f});
  ExpectPlaces("halves", {0, 0, 1, 1, .84147098f, .0001f, .54030231f, 1});
}

// F49: sequences longer than the model's positions are cut on request, and never silently.
TEST(WorkedExample, LongTextsAreCutWhenAskedFor) {
  const TempFolder folder;
  folder.Write("config.json", TinyBertConfig());
  folder.Write("model.safetensors", MakeSafetensors(TinyBertTensors()));
  ArticleServer server(folder.path());
  v1::EncodeRequest request, first, last;
  *request.mutable_token_ids() = IntegerTensor({1, 8}, {1, 2, 3, 4, 5, 6, 7, 8});
  *first.mutable_token_ids() = IntegerTensor({1, 6}, {1, 2, 3, 4, 5, 6});
  *last.mutable_token_ids() = IntegerTensor({1, 6}, {3, 4, 5, 6, 7, 8});
  const grpc::Status status = server.TryEncode(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), AllOf(HasSubstr("6"), HasSubstr("8")));
  request.set_truncation(v1::TRUNCATE_RIGHT);
  EXPECT_EQ(server::Rows(server.Encoded(request), 4, 0, 6), server.Encoded(first));
  request.set_truncation(v1::TRUNCATE_LEFT);
  EXPECT_EQ(server::Rows(server.Encoded(request), 4, 2, 6), server.Encoded(last));
}

// Weights [in, out] could be read as [out, in]: a square matrix fits both, so that the layout has
// no default.
TEST(WorkedExample, TheWeightLayoutHasToBeSaid) {
  json description = Description();
  description.erase("weight_layout");
  EXPECT_THAT(Refusal(description, kWeights), HasSubstr("weight_layout"));

  std::vector<TestTensor> square;
  int64_t seed = 2;
  for (const char* name : {"w_query", "w_key", "w_value"}) {
    square.push_back(Generated(name, {4, 4}, seed++));
  }
  description["weight_layout"] = "out_in";
  ArticleServer out_in(description, square);
  ArticleServer in_out(Description(), square);
  const v1::AttendRequest request = RequestOf({1, 3, 4}, kInputs);
  EXPECT_GT(LargestDifference(out_in.Output(request), in_out.Output(request)), 0.1);
}

}  // namespace worked_example_test
}  // namespace attendant::articles
