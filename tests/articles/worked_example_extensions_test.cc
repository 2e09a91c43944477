// Tests of "Worked example": the list of extensions at the end of the article, which lead from its
// three weights towards a transformer. Dimensions, positions, truncation and masking are in
// worked_example_test.cc.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <utility>

#include "tests/articles/article_server.h"
#include "tests/support/test_vectors.h"

namespace attendant::articles {
namespace worked_example_extensions_test {

using attendant::test_support::Generate;
using nlohmann::json;

const std::vector<float> kInputs = {1, 0, 1, 0, 0, 2, 0, 2, 1, 1, 1, 1};
constexpr std::array<std::array<double, 3>, 3> kOutputs = {
    {{1.936621062, 6.683105308, 1.595068407},
     {1.999993966, 7.963991595, .053976405},
     {1.999704613, 7.759892255, .358389295}}};

// Returns the article's weights, with `suffix` after their names.
std::vector<TestTensor> Weights(const std::string& suffix = "") {
  return {WithValues("w_query" + suffix, {4, 3}, {1, 0, 1, 1, 0, 0, 0, 0, 1, 0, 1, 1}),
          WithValues("w_key" + suffix, {4, 3}, {0, 0, 1, 1, 1, 0, 0, 1, 0, 1, 1, 0}),
          WithValues("w_value" + suffix, {4, 3}, {0, 2, 0, 0, 3, 0, 1, 0, 3, 1, 1, 0})};
}

json Description() {
  return {{"module", "attention"}, {"file", "weights.safetensors"},
          {"num_heads", 1},        {"weight_layout", "in_out"},
          {"query", "w_query"},    {"key", "w_key"},
          {"value", "w_value"},    {"score_scale", 1}};
}

// F16: any projection may have a bias. A bias of values reaches the outputs unchanged, because the
// probabilities sum to 1; a bias of keys shifts all scores of a query alike.
TEST(WorkedExampleExtensions, BiasesAreOptional) {
  std::vector<TestTensor> weights = Weights(".weight");
  weights.push_back(WithValues("w_key.bias", {3}, {3, -1, 2}));
  weights.push_back(WithValues("w_value.bias", {3}, {10, 20, 30}));
  ArticleServer server(Description(), weights);
  const std::vector<float> output = server.Output(RequestOf({1, 3, 4}, kInputs));
  ASSERT_EQ(output.size(), 9u);
  for (size_t i = 0; i < 9; ++i) {
    EXPECT_NEAR(output[i], kOutputs[i / 3][i % 3] + 10.0 * (i % 3 + 1), 1e-5);
  }
}

// F1: multi-head attention. The article's numbers are the columns of one head, next to those of
// another.
TEST(WorkedExampleExtensions, HeadsStandSideBySide) {
  std::vector<TestTensor> heads = Weights("0"), other;
  for (const char* name : {"w_query", "w_key", "w_value"}) {
    other.push_back(Generated(name, {4, 3}, static_cast<int64_t>(10 + other.size())));
    heads.push_back(other.back());
    heads.back().name += "1";
  }
  json description = Description();
  description["num_heads"] = 2;
  for (const char* part : {"query", "key", "value"}) {
    description[part] = std::string("w_") + part + "{head}";
  }
  ArticleServer both(description, heads), second(Description(), other);
  const v1::AttendRequest request = RequestOf({1, 3, 4}, kInputs);
  const std::vector<float> output = both.Output(request), alone = second.Output(request);
  ASSERT_EQ(output.size(), 3u * 6);
  for (size_t row = 0; row < 3; ++row) {
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(output[row * 6 + i], kOutputs[row][i], kTolerance);
      EXPECT_NEAR(output[row * 6 + 3 + i], alone[row * 3 + i], kTolerance);
    }
  }
}

// Linear transformations: one follows the attention, with weights in the article's layout.
TEST(WorkedExampleExtensions, ALinearLayerMayFollow) {
  std::vector<TestTensor> weights = Weights();
  weights.push_back(WithValues("w_output", {3, 2}, {1, 0, 0, 1, 2, -1}));
  json description = Description();
  description["output"] = "w_output";
  ArticleServer server(description, weights);
  const std::vector<float> output = server.Output(RequestOf({1, 3, 4}, kInputs, v1::PROJECTED));
  for (int64_t row = 0; row < 3; ++row) {
    ExpectRow(output, row,
              {kOutputs[row][0] + 2 * kOutputs[row][2], kOutputs[row][1] - kOutputs[row][2]});
  }
}

// Returns (x - mean) / sqrt(biased variance + epsilon).
std::vector<float> LayerNorm(const std::vector<float>& x, const std::vector<float>& gamma,
                             const std::vector<float>& beta) {
  std::vector<float> y;
  const size_t width = gamma.size();
  for (size_t row = 0; row < x.size(); row += width) {
    double mean = 0, variance = 0;
    for (size_t i = 0; i < width; ++i) mean += x[row + i] / static_cast<double>(width);
    for (size_t i = 0; i < width; ++i) variance += std::pow(x[row + i] - mean, 2) / width;
    for (size_t i = 0; i < width; ++i) {
      y.push_back(static_cast<float>((x[row + i] - mean) / std::sqrt(variance + 1e-12) * gamma[i] +
                                     beta[i]));
    }
  }
  return y;
}

// F47: the embedding module. The sum of the table rows of the word, its place and its type is
// normed and enters the first layer.
TEST(WorkedExampleExtensions, EmbeddingsComeFirst) {
  const std::vector<float> of_types = {1, 0, 0, -1, 0, 0.5f, -1, 0};
  std::vector<TestTensor> tensors = TinyBertTensors();
  for (TestTensor& tensor : tensors) {
    if (tensor.name == "embeddings.token_type_embeddings.weight") {
      tensor = WithValues(tensor.name, {2, 4}, of_types);
    }
  }
  const TempFolder folder;
  folder.Write("config.json", TinyBertConfig());
  folder.Write("model.safetensors", MakeSafetensors(tensors));
  ArticleServer server(folder.path());
  const std::vector<int64_t> words = {7, 2, 9}, types = {0, 1, 1};
  const std::vector<float> of_words = TestValues("embeddings.word_embeddings.weight", 40),
                           of_places = TestValues("embeddings.position_embeddings.weight", 24);
  std::vector<float> sum;
  for (int64_t token = 0; token < 3; ++token) {
    for (int64_t i = 0; i < 4; ++i) {
      sum.push_back(of_words[words[token] * 4 + i] + of_places[token * 4 + i] +
                    of_types[types[token] * 4 + i]);
    }
  }
  v1::EncodeRequest ids, hidden;
  *ids.mutable_token_ids() = IntegerTensor({1, 3}, words);
  *ids.mutable_token_type_ids() = IntegerTensor({1, 3}, types);
  *hidden.mutable_hidden_states() =
      FloatTensor({1, 3, 4}, LayerNorm(sum, TestValues("embeddings.LayerNorm.weight", 4),
                                       TestValues("embeddings.LayerNorm.bias", 4)));
  EXPECT_LT(LargestDifference(server.Encoded(ids), server.Encoded(hidden)), 1e-5);
  const std::vector<float> typed = server.Encoded(ids);
  ids.clear_token_type_ids();
  EXPECT_GT(LargestDifference(server.Encoded(ids), typed), 0.01);
}

// Returns layers of torch with the weights of TV4.
struct TorchLayers {
  int64_t count = 1;
  bool norm_first = false;
};

ArticleServer Serve(const TorchLayers& layers) {
  std::vector<float> in_proj, bias;
  for (const int64_t seed : {2, 4, 6}) {
    for (const float element : Generate(16, seed)) in_proj.push_back(element);
    for (const float element : Generate(4, seed + 1)) bias.push_back(element);
  }
  std::vector<TestTensor> tensors;
  for (int64_t i = 0; i < layers.count; ++i) {
    const std::string layer = layers.count > 1 ? "layers." + std::to_string(i) + "." : "";
    const auto add_norm = [&](const std::string& norm, int64_t seed) {
      std::vector<float> gamma = Generate(4, seed);
      for (float& element : gamma) element = 1 + element / 4;
      tensors.push_back(WithValues(layer + norm + ".weight", {4}, gamma));
      tensors.push_back(Generated(layer + norm + ".bias", {4}, seed + 1));
    };
    tensors.push_back(WithValues(layer + "self_attn.in_proj_weight", {12, 4}, in_proj));
    tensors.push_back(WithValues(layer + "self_attn.in_proj_bias", {12}, bias));
    tensors.push_back(Generated(layer + "self_attn.out_proj.weight", {4, 4}, 8));
    tensors.push_back(Generated(layer + "self_attn.out_proj.bias", {4}, 9));
    add_norm("norm1", 10);
    tensors.push_back(Generated(layer + "linear1.weight", {8, 4}, 12));
    tensors.push_back(Generated(layer + "linear1.bias", {8}, 13));
    tensors.push_back(Generated(layer + "linear2.weight", {4, 8}, 14));
    tensors.push_back(Generated(layer + "linear2.bias", {4}, 15));
    add_norm("norm2", 16);
  }
  return ArticleServer(
      {{"module", layers.count > 1 ? "nn.TransformerEncoder" : "nn.TransformerEncoderLayer"},
       {"file", "weights.safetensors"},
       {"num_heads", 2},
       {"norm_first", layers.norm_first},
       {"activation", "relu"},
       {"layer_norm_eps", 1e-5}},
      tensors);
}

v1::EncodeRequest PaddedBatch() {
  v1::EncodeRequest request;
  *request.mutable_hidden_states() = FloatTensor({2, 3, 4}, Generate(24, 1));
  request.add_lengths(3);
  request.add_lengths(2);
  return request;
}

// F4: layer stacking: a stack of two is the layer alone, twice.
TEST(WorkedExampleExtensions, LayersStack) {
  ArticleServer one = Serve({}), two = Serve({.count = 2});
  v1::EncodeRequest request = PaddedBatch();
  const std::vector<float> stacked = two.Encoded(request), first = one.Encoded(request);
  *request.mutable_hidden_states() = FloatTensor({2, 3, 4}, first);
  EXPECT_EQ(one.Encoded(request), stacked);
  EXPECT_GT(LargestDifference(first, stacked), 0.1);
}

// F3 and F40, TV6 and TV6b: layer norms before the two blocks, or after them.
TEST(WorkedExampleExtensions, NormsComeFirstOrLast) {
  const std::vector<float> first = Serve({.norm_first = true}).Encoded(PaddedBatch());
  ExpectRow(first, 0, {.04212707, -3.29700294, .30610009, 3.83327153});
  ExpectSums(first, 7.58383942, 108.28945465);
  const std::vector<float> last = Serve({}).Encoded(PaddedBatch());
  ExpectRow(last, 0, {-.55329167, -.05415333, 1.18600299, .92930203});
  ExpectSums(last, 7.4195323, 11.54397563);
}

// Returns the output of a layer's first norm for [1, 2, 3, 4], in a layer that adds nothing to it.
std::vector<float> FirstNorm(const std::vector<float>& gamma, const std::vector<float>& beta) {
  std::vector<TestTensor> tensors = {WithValues("norm1.weight", {4}, gamma),
                                     WithValues("norm1.bias", {4}, beta),
                                     WithValues("norm2.weight", {4}, {1, 1, 1, 1})};
  const auto add_zeros = [&](const std::string& name, std::vector<int64_t> shape) {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    tensors.push_back(WithValues(name, std::move(shape), std::vector<float>(count)));
  };
  add_zeros("self_attn.in_proj_weight", {12, 4});
  add_zeros("self_attn.in_proj_bias", {12});
  for (const std::string layer : {"self_attn.out_proj", "linear1", "linear2"}) {
    add_zeros(layer + ".weight", {4, 4});
    add_zeros(layer + ".bias", {4});
  }
  add_zeros("norm2.bias", {4});
  ArticleServer server({{"module", "nn.TransformerEncoderLayer"},
                        {"file", "weights.safetensors"},
                        {"num_heads", 1},
                        {"norm_first", false},
                        {"activation", "relu"},
                        {"layer_norm_eps", 1e-5}},
                       tensors);
  return server.Output(RequestOf({1, 1, 4}, {1, 2, 3, 4}, v1::BLOCK));
}

// F40: the variance is the biased one, and epsilon is added to it under the root.
TEST(WorkedExampleExtensions, LayerNormDividesByTheBiasedDeviation) {
  ExpectRow(FirstNorm({1, 1, 1, 1}, {0, 0, 0, 0}), 0,
            {-1.34163542, -.44721181, .44721181, 1.34163542});
  ExpectRow(FirstNorm({1, 2, 1, 2}, {5, 5, 0, 0}), 0,
            {5 - 1.34163542, 5 - 2 * .44721181, .44721181, 2 * 1.34163542});
}

// F40: T5 norms by the root mean square only and subtracts no mean.
TEST(WorkedExampleExtensions, RmsNormKeepsTheMean) {
  const std::string block = "encoder.block.0.layer.";
  const auto zeros = [](const std::string& name, std::vector<int64_t> shape) {
    return WithValues(name + ".weight", shape, std::vector<float>(shape[0] * shape[1]));
  };
  const std::vector<float> ones = {1, 1, 1, 1};
  std::vector<TestTensor> tensors = {
      zeros("shared", {10, 4}), zeros(block + "0.SelfAttention.relative_attention_bias", {8, 2}),
      zeros(block + "1.DenseReluDense.wi", {4, 4}), zeros(block + "1.DenseReluDense.wo", {4, 4})};
  for (const char* part : {"q", "k", "v", "o"}) {
    tensors.push_back(zeros(block + "0.SelfAttention." + part, {4, 4}));
  }
  for (const std::string& norm :
       {block + "0.layer_norm", block + "1.layer_norm", std::string("encoder.final_layer_norm")}) {
    tensors.push_back(WithValues(norm + ".weight", {4}, ones));
  }
  const TempFolder folder;
  folder.Write("config.json", R"({"model_type": "t5", "d_model": 4, "d_kv": 2, "num_heads": 2,
      "num_layers": 1, "d_ff": 4, "vocab_size": 10, "layer_norm_epsilon": 1e-6,
      "relative_attention_num_buckets": 8, "relative_attention_max_distance": 20,
      "feed_forward_proj": "relu"})");
  folder.Write("model.safetensors", MakeSafetensors(tensors));
  v1::EncodeRequest request;
  *request.mutable_hidden_states() = FloatTensor({1, 1, 4}, {1, 2, 3, 4});
  ExpectRow(ArticleServer(folder.path()).Encoded(request), 0,
            {.36514835, 2 * .36514835, 3 * .36514835, 4 * .36514835});
}

}  // namespace worked_example_extensions_test
}  // namespace attendant::articles
