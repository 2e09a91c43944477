// Tests of "Ten plus one insights": what heads do, what layers of them do, and what they cost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/inspect/statistics.h"
#include "server/describe/model_report.h"
#include "server/settings/model_setting.h"
#include "tests/articles/article_server.h"
#include "tests/support/test_vectors.h"

namespace attendant::articles {
namespace ten_plus_one_diagnostics_test {

using attendant::test_support::Generate;
using client::Matrix;
using nlohmann::json;

json Projections() {
  return {{"module", "attention"}, {"file", "weights.safetensors"},
          {"num_heads", 1},        {"weight_layout", "out_in"},
          {"query", "query"},      {"key", "key"},
          {"value", "value"},      {"score_scale", 1}};
}

Matrix ToMatrix(const std::vector<float>& values, int64_t columns) {
  const auto size = static_cast<int64_t>(values.size());
  Matrix matrix(size / columns, columns);
  for (int64_t i = 0; i < size; ++i) matrix(i / columns, i % columns) = values[i];
  return matrix;
}

std::vector<float> Identity(int size) {
  std::vector<float> values(size * size, 0.0f);
  for (int i = 0; i < size; ++i) values[i * size + i] = 1;
  return values;
}

// F33: weights that shift by one make a head that looks at the next token.
TEST(TenPlusOneInsights, AHeadMayLookAtItsNeighbour) {
  constexpr int kTokens = 5;
  const std::vector<float> identity = Identity(kTokens);
  std::vector<float> shift(kTokens * kTokens, 0.0f);
  for (int i = 0; i + 1 < kTokens; ++i) shift[(i + 1) * kTokens + i] = 8;
  ArticleServer server(Projections(), {WithValues("query", {kTokens, kTokens}, shift),
                                       WithValues("key", {kTokens, kTokens}, identity),
                                       WithValues("value", {kTokens, kTokens}, identity)});
  const client::HeadStatistics head = client::MeasureHead(
      ToMatrix(server.Probabilities(RequestOf({1, kTokens, kTokens}, identity)), kTokens));
  EXPECT_TRUE(head.positional());
  EXPECT_EQ(head.neighbour, 1);
  EXPECT_GT(head.confidence, 0.8);
}

// F33: another head may look at the least frequent tokens, wherever they are.
TEST(TenPlusOneInsights, AHeadMayLookAtRareTokens) {
  constexpr int kTokens = 4, kWidth = 2;
  // The columns are: whether a token is rare, and 1.
  const std::vector<float> rows = {0, 1, 0, 1, 1, 1, 0, 1};
  ArticleServer server(Projections(), {WithValues("query", {kWidth, kWidth}, {0, 9, 0, 0}),
                                       WithValues("key", {kWidth, kWidth}, {1, 0, 0, 0}),
                                       WithValues("value", {kWidth, kWidth}, Identity(kWidth))});
  const Matrix probabilities =
      ToMatrix(server.Probabilities(RequestOf({1, kTokens, kWidth}, rows)), kTokens);
  const client::HeadStatistics head =
      client::MeasureHead(probabilities, {false, false, true, false});
  EXPECT_EQ(head.rare_share, 1);
  EXPECT_FALSE(head.positional());
}

// F36: the number of singular values that hold the probabilities is one if all queries look alike,
// and that of all tokens if each looks at a key of its own.
TEST(TenPlusOneInsights, ProbabilitiesMayBeOfLowRank) {
  constexpr int kTokens = 4;
  const std::vector<float> identity = Identity(kTokens);
  const auto rank = [&](float weight) {
    std::vector<float> query = identity;
    for (float& element : query) element *= weight;
    ArticleServer server(Projections(), {WithValues("query", {kTokens, kTokens}, query),
                                         WithValues("key", {kTokens, kTokens}, identity),
                                         WithValues("value", {kTokens, kTokens}, identity)});
    const client::HeadStatistics head = client::MeasureHead(
        ToMatrix(server.Probabilities(RequestOf({1, kTokens, kTokens}, identity)), kTokens));
    return client::RankOfShare(head.cumulative_singular_values, 0.99);
  };
  EXPECT_EQ(rank(0), 1);
  EXPECT_EQ(rank(20), kTokens);
}

// Returns what `attendant-server --describe --ranks` finds in two heads with these queries [4, 4],
// which are also their keys.
server::ModelReport Describe(const std::vector<float>& queries) {
  json description = Projections();
  description["num_heads"] = 2;
  const TempFolder folder;
  folder.Write("attendant.json", description.dump());
  folder.Write("weights.safetensors", MakeSafetensors({WithValues("query", {4, 4}, queries),
                                                       WithValues("key", {4, 4}, queries),
                                                       WithValues("value", {4, 4}, Identity(4))}));
  server::Settings settings;
  settings.models.push_back(*server::ParseModelSetting("m=" + folder.path()));
  return server::InspectModel(settings, {.instances = 1, .threads_per_instance = 1},
                              {int64_t{1} << 40, "of the test"}, /*ranks=*/true);
}

// F34: heads can collaborate because each may use all of its width to compare tokens, while
// together they use no more than one of them if they look at the same columns.
TEST(TenPlusOneInsights, HeadsOfFullRankMayShareTheirProjections) {
  const server::ModelReport own = Describe(Identity(4));
  const server::ModelReport shared = Describe({1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0});
  EXPECT_THAT(server::ToText(own), ::testing::HasSubstr("weight set 0: 2 2; together 4"));
  EXPECT_THAT(server::ToText(shared), ::testing::HasSubstr("weight set 0: 2 2; together 2"));
  EXPECT_EQ(json::parse(server::ToJson(shared))["query_key_ranks"],
            json::parse(R"([{"heads": [2, 2], "concatenated": 2}])"));
}

// F39: attention after attention averages tokens until they are alike; skip connections prevent it.
TEST(TenPlusOneInsights, AttentionAloneMakesTokensAlike) {
  constexpr int kTokens = 16, kWidth = 8;
  json description = Projections();
  description["score_scale"] = 0.1;
  ArticleServer server(
      description, {Generated("query", {kWidth, kWidth}, 2), Generated("key", {kWidth, kWidth}, 3),
                    WithValues("value", {kWidth, kWidth}, Identity(kWidth))});
  const auto attend = [&](const std::vector<float>& x) {
    return server.Output(RequestOf({1, kTokens, kWidth}, x));
  };
  std::vector<float> alone = Generate(kTokens * kWidth, 1), skipped = alone;
  for (int layer = 0; layer < 4; ++layer) {
    const double before = client::TokenUniformity(ToMatrix(alone, kWidth));
    alone = attend(alone);
    EXPECT_LT(client::TokenUniformity(ToMatrix(alone, kWidth)), before);
    const std::vector<float> branch = attend(skipped);
    for (size_t i = 0; i < skipped.size(); ++i) skipped[i] = (skipped[i] + branch[i]) / 2;
  }
  const double left = client::TokenUniformity(ToMatrix(alone, kWidth));
  EXPECT_LT(left, 0.1);
  EXPECT_GT(client::TokenUniformity(ToMatrix(skipped, kWidth)), 2 * left);
}

// F46: a layer costs 8nE^2 + 4nEF for its linear layers, and 4n^2E for its scores and mixtures.
TEST(TenPlusOneInsights, CostsAreThoseOfTheProjectionsToo) {
  constexpr int64_t kE = 4, kF = 6;
  ArticleServer server(
      {{"module", "nn.TransformerEncoderLayer"},
       {"file", "weights.safetensors"},
       {"num_heads", 2},
       {"norm_first", true},
       {"activation", "gelu"},
       {"layer_norm_eps", 1e-5}},
      {Generated("self_attn.in_proj_weight", {3 * kE, kE}, 20),
       Generated("self_attn.out_proj.weight", {kE, kE}, 21),
       Generated("linear1.weight", {kF, kE}, 22), Generated("linear2.weight", {kE, kF}, 23),
       Generated("norm1.weight", {kE}, 24), Generated("norm2.weight", {kE}, 25)});
  int64_t per_token = 0, per_pair = 0;
  const v1::GetModelResponse model = server.Model();
  for (const v1::StageCost& cost : model.stage_costs()) {
    per_token += cost.flops_per_token();
    per_pair += cost.flops_per_pair();
  }
  EXPECT_EQ(per_token, 8 * kE * kE + 4 * kE * kF);
  EXPECT_EQ(per_pair, 4 * kE);
}

}  // namespace ten_plus_one_diagnostics_test
}  // namespace attendant::articles
