// Tests of "Ten plus one insights": properties of attention that its formula does not show at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "server/models/model_loading.h"
#include "server/settings/model_setting.h"
#include "tests/articles/article_server.h"
#include "tests/support/test_vectors.h"

namespace attendant::articles {
namespace ten_plus_one_insights_test {

using attendant::test_support::Generate;
using nlohmann::json;

json Projections(const std::string& query, const std::string& key, const std::string& value) {
  return {{"module", "attention"}, {"file", "weights.safetensors"},
          {"num_heads", 1},        {"weight_layout", "out_in"},
          {"query", query},        {"key", key},
          {"value", value}};
}

v1::AttendRequest Request() { return RequestOf({1, 3, 4}, Generate(12, 1)); }

// Returns the sum of score(i, j) - score(j, i) over the cycle of tokens 0, 1, 2, from probabilities
// [3, 3]: what softmax subtracts from each row cancels. 0 if scores are symmetric.
double ScoreAsymmetry(const std::vector<float>& probabilities) {
  double sum = 0;
  for (int i = 0; i < 3; ++i) {
    const int j = (i + 1) % 3;
    sum += std::log(static_cast<double>(probabilities[i * 3 + j]) / probabilities[j * 3 + i]);
  }
  return sum;
}

// F25, TV11: if queries are the keys, scores are symmetric, but softmax works by rows.
TEST(TenPlusOneInsights, SharedQueriesAndKeysScoreSymmetrically) {
  ArticleServer server(Projections("query", "query", "value"),
                       {Generated("query", {4, 4}, 2), Generated("value", {4, 4}, 4)});
  const std::vector<float> probabilities = server.Probabilities(Request());
  ExpectRow(probabilities, 0, {.39173259, .04759374, .56067367});
  EXPECT_NEAR(ScoreAsymmetry(probabilities), 0, 1e-5);
  double asymmetry = 0;
  for (const auto& [row, column] : {std::pair{0, 1}, {0, 2}, {1, 2}}) {
    const double difference = probabilities[row * 3 + column] - probabilities[column * 3 + row];
    asymmetry = std::max(asymmetry, std::abs(difference));
  }
  EXPECT_NEAR(asymmetry, 0.205, 1e-3);
}

// F25: the projection that queries and keys share is in memory once.
TEST(TenPlusOneInsights, SharedQueriesAndKeysTakeAThirdLess) {
  constexpr int64_t kWidth = 192;
  std::vector<TestTensor> weights = {Generated("value", {kWidth, kWidth}, 4),
                                     Generated("query", {kWidth, kWidth}, 2)};
  ArticleServer tied(Projections("query", "query", "value"), weights);
  weights.push_back(Generated("key", {kWidth, kWidth}, 2));
  ArticleServer untied(Projections("query", "key", "value"), weights);
  const auto model = tied.Model();
  // The elements are numbers of bfloat16 too, in which they are kept where that gives the same
  // bits.
  const int64_t bytes = kWidth * kWidth * (model.weight_type() == "bf16" ? 2 : 4);
  EXPECT_NEAR(untied.Model().weight_bytes() - model.weight_bytes(), bytes, bytes / 20);
}

// A server of the models that values of its flag --model name.
class NamedModels {
 public:
  explicit NamedModels(const std::vector<std::string>& models) : server_(OptionsOf(models)) {}

  // Returns the hidden states of three tokens.
  std::vector<float> Encode(const char* model) {
    v1::EncodeRequest request;
    request.set_model(model);
    *request.mutable_token_ids() = IntegerTensor({1, 3}, {1, 2, 3});
    v1::EncodeResponse response;
    EXPECT_TRUE(server_.Encode(request, &response).ok());
    return ToFloats(response.hidden_states());
  }

  v1::GetModelResponse Describe(const char* model) {
    grpc::ClientContext context;
    v1::GetModelRequest request;
    request.set_model(model);
    v1::GetModelResponse response;
    EXPECT_TRUE(server_.stub().GetModel(&context, request, &response).ok());
    return response;
  }

 private:
  static server::TestServerOptions OptionsOf(const std::vector<std::string>& models) {
    server::Settings settings;
    for (const std::string& model : models) {
      settings.models.push_back(*server::ParseModelSetting(model));
    }
    server::TestServerOptions options;
    options.models = *server::LoadModels(*server::OpenModels(settings));
    return options;
  }

  server::TestServer server_;
};

// F41: the same frozen weights do another task with norms of their own, here one whose answer is
// the same for every token.
TEST(TenPlusOneInsights, NormsAloneMakeAnotherModel) {
  const TempFolder folder;
  folder.Write("base/config.json", TinyBertConfig());
  folder.Write("base/model.safetensors", MakeSafetensors(TinyBertTensors()));
  const std::vector<float> quiet = {1e-3f, 1e-3f, 1e-3f, 1e-3f}, bias = {1, 2, 3, 4};
  folder.Write("norms.safetensors",
               MakeSafetensors({WithValues("encoder.layer.1.output.LayerNorm.weight", {4}, quiet),
                                WithValues("encoder.layer.1.output.LayerNorm.bias", {4}, bias)}));
  NamedModels models(
      {"base=" + folder.File("base"), "task=base,overlay=" + folder.File("norms.safetensors")});
  const std::vector<float> task = models.Encode("task");
  for (size_t i = 0; i < task.size(); ++i) EXPECT_NEAR(task[i], bias[i % 4], 3e-3);
  EXPECT_GT(LargestDifference(task, models.Encode("base")), 0.1);

  const v1::GetModelResponse model = models.Describe("task");
  EXPECT_EQ(model.base(), "base");
  EXPECT_EQ(model.weight_bytes(), 8 * 4);
}

// F32 and F41: with some heads pruned as well, the model equals a copy that is changed in both
// ways.
TEST(TenPlusOneInsights, NormsOfATaskMayComeWithFewerHeads) {
  const TempFolder folder;
  const std::string changed = "encoder.layer.1.output.LayerNorm.weight";
  std::vector<TestTensor> tensors = TinyBertTensors();
  for (const char* name : {"base", "copy"}) {
    folder.Write(std::string(name) + "/config.json", TinyBertConfig());
    folder.Write(std::string(name) + "/model.safetensors", MakeSafetensors(tensors));
    for (TestTensor& tensor : tensors) {
      if (tensor.name == changed) tensor = WithValues(changed, {4}, {3, 1, 2, 5});
    }
  }
  folder.Write("norms.safetensors", MakeSafetensors({WithValues(changed, {4}, {3, 1, 2, 5})}));
  folder.Write("heads.json", R"({"0": [1]})");
  const std::string prune = ",prune=" + folder.File("heads.json");
  NamedModels models({"base=" + folder.File("base"), "copy=" + folder.File("copy") + prune,
                      "task=base,overlay=" + folder.File("norms.safetensors") + prune});
  EXPECT_EQ(models.Encode("task"), models.Encode("copy"));
  EXPECT_NE(models.Encode("task"), models.Encode("base"));
  const v1::GetModelResponse task = models.Describe("task");
  EXPECT_EQ(task.base(), "base");
  ASSERT_EQ(task.pruned_layers_size(), 1);
  EXPECT_EQ(task.pruned_layers(0).heads_size(), 1);
  EXPECT_EQ(models.Describe("base").pruned_layers_size(), 0);
  EXPECT_LT(task.weight_bytes(), models.Describe("copy").weight_bytes() / 2);
}

// F42: a frozen transformer for data other than text. A linear layer into it and one out of it
// equal what a client could do before and after the stack.
TEST(TenPlusOneInsights, LinearLayersAroundAFrozenStackTakeAnything) {
  const std::vector<float> into = Generate(8, 30), out_of = Generate(12, 31);
  ArticleServer server(
      {{"module", "nn.TransformerEncoderLayer"},
       {"file", "weights.safetensors"},
       {"num_heads", 2},
       {"norm_first", true},
       {"activation", "gelu"},
       {"layer_norm_eps", 1e-5},
       {"input_projection", "into"},
       {"output_projection", "out_of"},
       {"pooling", "last_token"}},
      {Generated("self_attn.in_proj_weight", {12, 4}, 20),
       Generated("self_attn.out_proj.weight", {4, 4}, 21), Generated("linear1.weight", {6, 4}, 22),
       Generated("linear2.weight", {4, 6}, 23), Generated("norm1.weight", {4}, 24),
       Generated("norm2.weight", {4}, 25), WithValues("into.weight", {4, 2}, into),
       WithValues("out_of.weight", {3, 4}, out_of)});
  // Two sequences of 3 and 2 rows of raw data, 2 wide.
  const std::vector<float> raw = Generate(10, 32);
  v1::EncodeRequest features;
  *features.mutable_features() = FloatTensor({5, 2}, raw);
  features.add_lengths(3);
  features.add_lengths(2);
  v1::EncodeRequest hidden = features;
  hidden.clear_features();
  *hidden.mutable_hidden_states() = FloatTensor({5, 4}, Multiply(raw, into, 2));
  features.set_return_pooled(true);
  features.set_pooling(v1::CLASSIFIER);

  const v1::EncodeResponse answer = server.Encode(features);
  const std::vector<float> states = ToFloats(server.Encode(hidden).hidden_states());
  EXPECT_LE(LargestDifference(ToFloats(answer.hidden_states()), states), kTolerance);
  std::vector<float> last(states.begin() + 8, states.begin() + 12);
  last.insert(last.end(), states.begin() + 16, states.end());
  EXPECT_LE(LargestDifference(ToFloats(answer.pooled()), Multiply(last, out_of, 4)), kTolerance);
  EXPECT_EQ(server.Model().front().feature_width(), 2);
  EXPECT_EQ(server.Model().classes(), 3);
}

// F35: a key bias shifts all scores of a query alike, which softmax does not see; a value bias
// reaches the output unchanged, because the probabilities sum to 1.
TEST(TenPlusOneInsights, KeyBiasesDoNothingAndValueBiasesMoveToTheOutput) {
  json description = Projections("query", "key", "value");
  description["num_heads"] = 2;
  description["output"] = "output";
  const std::vector<float> value_bias = Generate(4, 26), output = Generate(16, 27);
  std::vector<float> output_bias = Generate(4, 28);
  const std::vector<TestTensor> weights = {
      Generated("query.weight", {4, 4}, 20), Generated("query.bias", {4}, 21),
      Generated("key.weight", {4, 4}, 22), Generated("value.weight", {4, 4}, 23),
      WithValues("output.weight", {4, 4}, output)};
  std::vector<TestTensor> all = weights, folded = weights;
  all.push_back(Generated("key.bias", {4}, 25));
  all.push_back(WithValues("value.bias", {4}, value_bias));
  all.push_back(WithValues("output.bias", {4}, output_bias));
  const std::vector<float> moved = Multiply(value_bias, output, 4);
  for (int i = 0; i < 4; ++i) output_bias[i] += moved[i];
  folded.push_back(WithValues("output.bias", {4}, output_bias));

  const v1::AttendRequest request = RequestOf({1, 3, 4}, Generate(12, 1), v1::PROJECTED);
  EXPECT_LE(LargestDifference(ArticleServer(description, all).Output(request),
                              ArticleServer(description, folded).Output(request)),
            kTolerance);
}

// F26: with projections of their own, even the scores have a direction.
TEST(TenPlusOneInsights, AttentionIsAsymmetric) {
  ArticleServer server(
      Projections("query", "key", "value"),
      {Generated("query", {4, 4}, 2), Generated("key", {4, 4}, 4), Generated("value", {4, 4}, 6)});
  EXPECT_GT(std::abs(ScoreAsymmetry(server.Probabilities(Request()))), 0.1);
}

// F23: the answer for a query does not depend on what other queries may see.
TEST(TenPlusOneInsights, QueriesAreIndependent) {
  ArticleServer server(
      Projections("query", "key", "value"),
      {Generated("query", {4, 4}, 2), Generated("key", {4, 4}, 4), Generated("value", {4, 4}, 6)});
  const float forbidden = -std::numeric_limits<float>::infinity();
  v1::AttendRequest request = Request();
  *request.mutable_attention_bias() =
      FloatTensor({1, 1, 3, 3}, {0, 0, 0, 0, forbidden, 0, forbidden, forbidden, 0});
  const std::vector<float> all = server.Output(Request()), others = server.Output(request);
  EXPECT_LT(LargestDifference(server::Rows(all, 4, 0, 1), server::Rows(others, 4, 0, 1)), 1e-6);
}

// F30: two sequences and three heads are six independent jobs: each depends on the weights of its
// head and on its sequence alone, and a NaN in one sequence stays there.
TEST(TenPlusOneInsights, SequencesAndHeadsAreIndependentJobs) {
  json description = Projections("query", "key", "value");
  description["num_heads"] = 3;
  const std::vector<float> query = Generate(36, 2), key = Generate(36, 4), rows = Generate(48, 1);
  ArticleServer all(description, {WithValues("query", {6, 6}, query),
                                  WithValues("key", {6, 6}, key), Generated("value", {6, 6}, 6)});
  const v1::AttendRequest batch = RequestOf({2, 4, 6}, rows);
  const std::vector<float> probabilities = all.Probabilities(batch), output = all.Output(batch);
  ASSERT_EQ(probabilities.size(), 2u * 3 * 4 * 4);
  description["num_heads"] = 1;
  for (int64_t head = 0; head < 3; ++head) {
    ArticleServer alone(description,
                        {WithValues("query", {2, 6}, server::Rows(query, 6, 2 * head, 2)),
                         WithValues("key", {2, 6}, server::Rows(key, 6, 2 * head, 2)),
                         Generated("value", {2, 6}, 6)});
    for (int64_t sequence = 0; sequence < 2; ++sequence) {
      const v1::AttendRequest job = RequestOf({1, 4, 6}, server::Rows(rows, 24, sequence, 1));
      EXPECT_LT(LargestDifference(server::Rows(probabilities, 16, 3 * sequence + head, 1),
                                  alone.Probabilities(job)),
                1e-6);
    }
  }
  std::vector<float> poisoned = rows;
  poisoned[5] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> answer = all.Output(RequestOf({2, 4, 6}, poisoned));
  EXPECT_EQ(server::Rows(answer, 24, 1, 1), server::Rows(output, 24, 1, 1));
  EXPECT_EQ(all.Output(RequestOf({1, 4, 6}, server::Rows(rows, 24, 1, 1))),
            server::Rows(output, 24, 1, 1));
}

std::vector<TestTensor> TwoHeads() {
  std::vector<TestTensor> tensors;
  int64_t seed = 2;
  for (const char* part : {"query", "key", "value"}) {
    tensors.push_back(Generated(std::string(part) + ".weight", {4, 4}, seed++));
    tensors.push_back(Generated(std::string(part) + ".bias", {4}, seed++));
  }
  return tensors;
}

// Returns a bias that allows pairs at most 1 apart, and all pairs with a global token 0 if there is
// one.
v1::Tensor LocalBias(bool has_global_token) {
  std::vector<float> bias;
  for (int query = 0; query < 8; ++query) {
    for (int key = 0; key < 8; ++key) {
      const bool allowed =
          std::abs(query - key) <= 1 || (has_global_token && (query == 0 || key == 0));
      bias.push_back(allowed ? 0 : -std::numeric_limits<float>::infinity());
    }
  }
  return FloatTensor({1, 1, 8, 8}, bias);
}

// F43, F44, TV16 and TV16b: local attention, alone and with a global token.
TEST(TenPlusOneInsights, LocalAndGlobalAttention) {
  json description = Projections("query", "key", "value");
  description["num_heads"] = 2;
  ArticleServer server(description, TwoHeads());
  v1::AttendRequest request = RequestOf({1, 8, 4}, Generate(32, 1));
  *request.mutable_attention_bias() = LocalBias(false);
  ExpectRow(server.Output(request), 0, {.54586354, 1.32362519, -.41496429, -.63355020});
  int live = 0;
  for (const float probability : server.Probabilities(request)) live += probability > 0;
  EXPECT_EQ(live, 2 * 22);
  *request.mutable_attention_bias() = LocalBias(true);
  ExpectRow(server.Output(request), 0, {.77090998, .63178696, -.32282805, -.57930440});
  live = 0;
  for (const float probability : server.Probabilities(request)) live += probability > 0;
  EXPECT_EQ(live, 2 * 34);
}

std::vector<TestTensor> TwoHeadsWithOutput() {
  std::vector<TestTensor> tensors = TwoHeads();
  tensors.push_back(Generated("output.weight", {4, 4}, 8));
  tensors.push_back(Generated("output.bias", {4}, 9));
  return tensors;
}

std::vector<double> ToDoubles(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

// Returns the operations for each pair of a query and a key.
int64_t AttentionFlops(const v1::GetModelResponse& model) {
  int64_t flops = 0;
  for (const v1::StageCost& cost : model.stage_costs()) flops += cost.flops_per_pair();
  return flops;
}

json TwoHeadedAttention() {
  json description = Projections("query", "key", "value");
  description["num_heads"] = 2;
  description["output"] = "output";
  return description;
}

v1::AttendRequest Projected() { return RequestOf({2, 3, 4}, Generate(24, 1), v1::PROJECTED); }

// F32, TV15: the first head is pruned. F31: a gate of 0 gives the same numbers.
TEST(TenPlusOneInsights, PrunedHeadsAreHeadsWithAGateOfZero) {
  ArticleServer whole(TwoHeadedAttention(), TwoHeadsWithOutput());
  ArticleServer pruned(TwoHeadedAttention(), TwoHeadsWithOutput(), {{"0", {0}}});
  const std::vector<float> left = pruned.Output(Projected());
  ExpectRow(left, 0, {-.05006656, .94875346, .27410850, 1.27292853});
  double sum = 0, squares = 0;
  for (const double value : left) {
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum, 19.71935065, 1e-5);
  EXPECT_NEAR(squares, 28.31570147, 1e-5);
  v1::AttendRequest gated = Projected();
  gated.add_head_gates(0);
  gated.add_head_gates(1);
  EXPECT_EQ(whole.Output(gated), left);
}

// F31: a gate between 0 and 1 weighs what a head adds to the output.
TEST(TenPlusOneInsights, GatesWeighHeads) {
  ArticleServer server(TwoHeadedAttention(), TwoHeadsWithOutput());
  const auto output = [&](float first, float second) {
    v1::AttendRequest request = Projected();
    request.add_head_gates(first);
    request.add_head_gates(second);
    return server.Output(request);
  };
  const std::vector<float> both = output(1, 1), none = output(0, 0);
  const std::vector<float> first = output(1, 0), mixed = output(1, 0.25f);
  EXPECT_EQ(both, server.Output(Projected()));
  ExpectRow(none, 0, ToDoubles(Generate(4, 9)));  // the output's bias
  std::vector<float> expected;
  for (size_t i = 0; i < both.size(); ++i) {
    expected.push_back(0.75f * first[i] + 0.25f * both[i]);
  }
  EXPECT_LT(LargestDifference(mixed, expected), 2e-6);
}

// The article's case: 17 of 48 heads in 6 layers are kept.
TEST(TenPlusOneInsights, SeventeenOf48HeadsAreEnough) {
  const std::vector<std::vector<int>> kept = {{1, 4},       {0, 2, 3}, {5},
                                              {1, 2, 6, 7}, {0, 3, 4}, {2, 5, 6, 7}};
  constexpr int kHeads = 8, kWidth = 16;
  json prune;
  std::vector<TestTensor> tensors;
  int64_t seed = 1;
  v1::EncodeRequest gated;
  for (int layer = 0; layer < 6; ++layer) {
    const std::string prefix = "layers." + std::to_string(layer) + ".";
    const auto add = [&](const std::string& name, std::vector<int64_t> shape) {
      tensors.push_back(Generated(prefix + name, std::move(shape), seed++));
    };
    add("self_attn.in_proj_weight", {3 * kWidth, kWidth});
    add("self_attn.out_proj.weight", {kWidth, kWidth});
    add("linear1.weight", {kWidth, kWidth});
    add("linear2.weight", {kWidth, kWidth});
    add("norm1.weight", {kWidth});
    add("norm2.weight", {kWidth});
    json& heads = prune[std::to_string(layer)] = json::array();
    for (int head = 0; head < kHeads; ++head) {
      const bool is_kept = std::count(kept[layer].begin(), kept[layer].end(), head) > 0;
      if (!is_kept) heads.push_back(head);
      gated.add_head_gates(is_kept ? 1 : 0);
    }
  }
  const json description = {{"module", "nn.TransformerEncoder"},
                            {"file", "weights.safetensors"},
                            {"num_heads", kHeads},
                            {"norm_first", false},
                            {"activation", "relu"},
                            {"layer_norm_eps", 1e-5}};
  ArticleServer whole(description, tensors), pruned(description, tensors, prune);
  int64_t left = 0;
  const v1::GetModelResponse model = pruned.Model();
  for (const v1::PrunedLayer& layer : model.pruned_layers()) left += layer.heads_size();
  EXPECT_EQ(left, 17);
  EXPECT_EQ(48 * AttentionFlops(model), 17 * AttentionFlops(whole.Model()));
  v1::EncodeRequest request;
  *request.mutable_hidden_states() = FloatTensor({1, 9, kWidth}, Generate(9 * kWidth, 3));
  *gated.mutable_hidden_states() = request.hidden_states();
  EXPECT_LE(LargestDifference(whole.Encoded(gated), pruned.Encoded(request)), kTolerance);
}

// F23: if only some queries are asked for, only they are answered, with the same numbers.
TEST(TenPlusOneInsights, SomeQueriesGiveTheRowsOfAll) {
  ArticleServer server(TwoHeadedAttention(), TwoHeadsWithOutput());
  const std::vector<float> all = server.Output(Projected());
  v1::AttendRequest request = Projected();
  request.add_query_rows(4);
  request.add_query_rows(0);
  const std::vector<float> some = server.Output(request);
  EXPECT_EQ(server::Rows(some, 4, 0, 1), server::Rows(all, 4, 4, 1));
  EXPECT_EQ(server::Rows(some, 4, 1, 1), server::Rows(all, 4, 0, 1));
}

}  // namespace ten_plus_one_insights_test
}  // namespace attendant::articles
