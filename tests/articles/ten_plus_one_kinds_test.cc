// Tests of "Ten plus one insights": attention that shares more, or looks at less.
#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <limits>

#include "tests/articles/article_server.h"
#include "tests/support/test_vectors.h"

namespace attendant::articles {
namespace ten_plus_one_kinds_test {

using attendant::test_support::Generate;
using nlohmann::json;

json Projections(int64_t heads) {
  return {{"module", "attention"}, {"file", "weights.safetensors"},
          {"num_heads", heads},    {"weight_layout", "out_in"},
          {"query", "query"},      {"key", "key"},
          {"value", "value"}};
}

std::vector<TestTensor> ThreeMatrices() {
  return {Generated("query", {4, 4}, 2), Generated("key", {4, 4}, 4),
          Generated("value", {4, 4}, 6)};
}

v1::AttendRequest ThreeTokens() { return RequestOf({1, 3, 4}, Generate(12, 1)); }

// F34, TV12: heads weigh columns of queries and keys that they share.
TEST(TenPlusOneInsights, HeadsCollaborate) {
  json description = Projections(2);
  description["mixing"] = "mixing";
  description["content_bias"] = "content_bias";
  ArticleServer server(description,
                       {Generated("query", {3, 4}, 2), Generated("key", {3, 4}, 4),
                        Generated("value.weight", {4, 4}, 6), Generated("value.bias", {4}, 7),
                        Generated("mixing", {2, 3}, 8), Generated("content_bias", {2, 4}, 9)});
  const std::vector<float> answer = server.Output(RequestOf({2, 3, 4}, Generate(24, 1)));
  ExpectRow(answer, 0, {1.05479450, .28463232, -.20063469, -.78708965});
  ExpectSums(answer, .10970195, 10.15520583);
}

// F37, TV13: any number of tokens is mixed into two.
TEST(TenPlusOneInsights, KeysAndValuesMayBeMixedIntoFew) {
  json description = Projections(1);
  description["attention"] = "linformer";
  description["key_mixing"] = "E";
  description["value_mixing"] = "F";
  std::vector<TestTensor> tensors = ThreeMatrices();
  tensors.push_back(Generated("E", {2, 3}, 20));
  tensors.push_back(Generated("F", {2, 3}, 21));
  ArticleServer server(description, tensors);
  const std::vector<float> answer = server.Output(ThreeTokens());
  ExpectRow(answer, 0, {.15008179, -.03119180, .35343990, -.21491994});
  ExpectSums(answer, 1.19193582, 1.14890739);
  // The mixing was trained for three tokens.
  const grpc::Status status = server.TryAttend(RequestOf({1, 4, 4}, Generate(16, 1)));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("at most 3 positions"), std::string::npos);
}

// F38, TV14 and TV14b: linear attention is a matrix that keys and values write and that queries
// read.
TEST(TenPlusOneInsights, LinearAttentionIsFastWeights) {
  json description = Projections(1);
  description["attention"] = "causal_linear";
  ArticleServer causal(description, ThreeMatrices());
  const std::vector<float> written = causal.Output(ThreeTokens());
  ExpectRow(written, 0, {.70875659, -.80481547, 1.05625680, .08503829});
  ExpectSums(written, 2.19691919, 69.79318199);
  description["attention"] = "linear";
  ArticleServer linear(description, ThreeMatrices());
  const std::vector<float> answer = linear.Output(ThreeTokens());
  ExpectRow(answer, 0, {1.87257704, -2.87124935, 3.05036576, -.24140271});
  ExpectSums(answer, 1.16099776, 136.94698302);
  // The last token reads all of them either way.
  EXPECT_LT(LargestDifference(server::Rows(written, 4, 2, 1), server::Rows(answer, 4, 2, 1)), 1e-5);
  const v1::GetModelResponse model = causal.Model();
  EXPECT_EQ(model.layer().attention(), "causal_linear");
  // F46: the cost grows with the length only.
  for (const v1::StageCost& cost : model.stage_costs()) {
    EXPECT_EQ(cost.flops_per_pair(), 0) << cost.stage();
  }
}

// F38, TV14: the matrix is kept between the parts of a sequence, even if each part is one token.
TEST(TenPlusOneInsights, FastWeightsStayBetweenTheTokensOfAStream) {
  json description = Projections(1);
  description["attention"] = "causal_linear";
  ArticleServer server(description, ThreeMatrices());
  for (const int64_t tokens : {1, 2, 3}) {
    const std::vector<float> answer = server.EncodedInParts(Generate(12, 1), 4, tokens);
    ExpectRow(answer, 0, {.70875659, -.80481547, 1.05625680, .08503829});
    ExpectSums(answer, 2.19691919, 69.79318199);
    EXPECT_EQ(answer, server.Output(ThreeTokens()));
  }
}

// Values that were written under orthogonal keys are read unchanged.
TEST(TenPlusOneInsights, FastWeightsGiveBackTheValueOfAKey) {
  json description = Projections(1);
  description["attention"] = "linear";
  const std::vector<float> identity = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
  const std::vector<float> values = Generate(16, 6);
  ArticleServer server(description,
                       {WithValues("query", {4, 4}, identity), WithValues("key", {4, 4}, identity),
                        WithValues("value", {4, 4}, values)});
  // Tokens are the unit vectors, so that token j has column j of the values.
  const std::vector<float> answer = server.Output(RequestOf({1, 4, 4}, identity));
  for (int j = 0; j < 4; ++j) {
    for (int i = 0; i < 4; ++i) EXPECT_EQ(answer[j * 4 + i], values[i * 4 + j]);
  }
}

// F43 and F44, TV16 and TV16b: neighbours only, alone and with a token that sees all and that all
// see.
TEST(TenPlusOneInsights, WindowsAndGlobalTokensAreBands) {
  json description = Projections(2);
  description["window"] = 1;
  std::vector<TestTensor> tensors;
  int64_t seed = 2;
  for (const char* part : {"query", "key", "value"}) {
    tensors.push_back(Generated(std::string(part) + ".weight", {4, 4}, seed++));
    tensors.push_back(Generated(std::string(part) + ".bias", {4}, seed++));
  }
  const v1::AttendRequest request = RequestOf({1, 8, 4}, Generate(32, 1));
  ArticleServer window(description, tensors);
  ExpectRow(window.Output(request), 0, {.54586354, 1.32362519, -.41496429, -.63355020});
  description["first_global"] = 1;
  ArticleServer global(description, tensors);
  ExpectRow(global.Output(request), 0, {.77090998, .63178696, -.32282805, -.57930440});
  const std::vector<float> probabilities = global.Probabilities(request);
  int pairs = 0;
  for (size_t i = 0; i < 64; ++i) pairs += probabilities[i] > 0 ? 1 : 0;
  EXPECT_EQ(pairs, 34);
}

// Returns a description with blocks of two tokens that see their neighbours, the first, the last,
// and those of a list.
json ListedBlocks(int64_t heads) {
  json description = Projections(heads);
  description["window"] = 1;
  description["window_block"] = 2;
  description["first_global"] = 1;
  description["last_global"] = 1;
  description["block_pairs"] = {{2, 5}, {5, 1}, {8, 3}, {3, 40}};
  return description;
}

bool SeesListedBlock(int from, int to, int last) {
  for (const int block : {from, to}) {
    if (block == 0 || block == last) return true;
  }
  return std::abs(from - to) <= 1 || (from == 2 && to == 5) || (from == 5 && to == 1) ||
         (from == 8 && to == 3);
}

// F45: a list of pairs of blocks, for any length; the last block may be half full.
TEST(TenPlusOneInsights, BlocksAreSeenAsTheirListSays) {
  ArticleServer server(ListedBlocks(1), ThreeMatrices());
  for (const int length : {1, 12, 19}) {
    const std::vector<float> probabilities =
        server.Probabilities(RequestOf({1, length, 4}, Generate(length * 4, 1)));
    for (int s = 0; s < length; ++s) {
      for (int t = 0; t < length; ++t) {
        EXPECT_EQ(probabilities[s * length + t] > 0,
                  SeesListedBlock(s / 2, t / 2, (length - 1) / 2))
            << s << " " << t << " of " << length;
      }
    }
  }
  const v1::GetModelResponse model = server.Model();
  ASSERT_EQ(model.block_pairs_size(), 4);
  EXPECT_EQ(model.block_pairs(1).query(), 3);
  EXPECT_EQ(model.block_pairs(1).key(), 40);
}

// F45: a list equals attention to all tokens with a bias that forbids the other pairs.
TEST(TenPlusOneInsights, ListsOfBlocksEqualTheSameMaskOfAllPairs) {
  constexpr int kLength = 23;
  json listed = ListedBlocks(2);
  listed["global_blocks"] = {6};
  ArticleServer blocks(listed, ThreeMatrices());
  ArticleServer dense(Projections(2), ThreeMatrices());
  v1::AttendRequest request = RequestOf({2, kLength, 4}, Generate(2 * kLength * 4, 1));
  const std::vector<float> answer = blocks.Output(request);
  std::vector<float> bias;
  for (int s = 0; s < kLength; ++s) {
    for (int t = 0; t < kLength; ++t) {
      const bool sees = s / 2 == 6 || t / 2 == 6 || SeesListedBlock(s / 2, t / 2, kLength / 2);
      bias.push_back(sees ? 0 : -std::numeric_limits<float>::infinity());
    }
  }
  EXPECT_GT(LargestDifference(answer, dense.Output(request)), 0.01);
  *request.mutable_attention_bias() = FloatTensor({1, 1, kLength, kLength}, bias);
  EXPECT_LT(LargestDifference(answer, dense.Output(request)), 1e-6);
}

// F44: listed tokens, wherever they are, see all tokens and are seen by all.
TEST(TenPlusOneInsights, ListedTokensAreGlobal) {
  json description = Projections(1);
  description["window"] = 1;
  description["global_blocks"] = {4, 100};
  ArticleServer server(description, ThreeMatrices());
  const std::vector<float> probabilities =
      server.Probabilities(RequestOf({1, 9, 4}, Generate(36, 1)));
  for (int s = 0; s < 9; ++s) {
    for (int t = 0; t < 9; ++t) {
      EXPECT_EQ(probabilities[s * 9 + t] > 0, s == 4 || t == 4 || std::abs(s - t) <= 1);
    }
  }
}

TEST(TenPlusOneInsights, ListsThatCannotBeAreRefused) {
  json description = ListedBlocks(1);
  description["block_pairs"] = {{2, 5}, {2, 5}};
  EXPECT_NE(Refusal(description, ThreeMatrices()).find("got [2, 5] twice"), std::string::npos);
  description["block_pairs"] = {{2, -5}};
  EXPECT_NE(Refusal(description, ThreeMatrices())
                .find("block_pairs: expected a list of up to 65536 different pairs of integers in "
                      "0..524287; got [2, -5] in it"),
            std::string::npos);
}

std::vector<float> Joined(std::initializer_list<std::vector<float>> parts) {
  std::vector<float> joined;
  for (const std::vector<float>& part : parts)
    joined.insert(joined.end(), part.begin(), part.end());
  return joined;
}

// Returns two equal layers of torch whose attention has these rows above each other.
struct Stack {
  json keys;
  std::vector<float> in_proj_weight, in_proj_bias;
  std::vector<TestTensor> tensors = {};
};

ArticleServer Serve(const Stack& stack) {
  json description = {{"module", "nn.TransformerEncoder"},
                      {"file", "weights.safetensors"},
                      {"num_heads", 1},
                      {"norm_first", false},
                      {"activation", "gelu"},
                      {"layer_norm_eps", 1e-5}};
  description.update(stack.keys);
  std::vector<TestTensor> tensors = stack.tensors;
  const auto rows = static_cast<int64_t>(stack.in_proj_bias.size());
  for (const std::string& layer : std::vector<std::string>{"layers.0.", "layers.1."}) {
    tensors.push_back(
        WithValues(layer + "self_attn.in_proj_weight", {rows, 4}, stack.in_proj_weight));
    tensors.push_back(WithValues(layer + "self_attn.in_proj_bias", {rows}, stack.in_proj_bias));
    tensors.push_back(Generated(layer + "self_attn.out_proj.weight", {4, 4}, 40));
    tensors.push_back(Generated(layer + "self_attn.out_proj.bias", {4}, 41));
    tensors.push_back(Generated(layer + "linear1.weight", {6, 4}, 42));
    tensors.push_back(Generated(layer + "linear1.bias", {6}, 43));
    tensors.push_back(Generated(layer + "linear2.weight", {4, 6}, 44));
    tensors.push_back(Generated(layer + "linear2.bias", {4}, 45));
    for (const char* norm : {"norm1", "norm2"}) {
      tensors.push_back(Generated(layer + norm + ".weight", {4}, 46));
      tensors.push_back(Generated(layer + norm + ".bias", {4}, 47));
    }
  }
  return ArticleServer(description, tensors);
}

// The vectors above, for each layer of a stack.
void ExpectContexts(ArticleServer& server, v1::AttendRequest request,
                    const std::vector<double>& first_row) {
  for (uint32_t layer : {0u, 1u}) {
    request.set_layer(layer);
    ExpectRow(server.Output(request), 0, first_row);
  }
}

// TV12 to TV14 and TV16 in torch's layers.
TEST(TenPlusOneInsights, LayersOfAStackAttendAsTheArticleSays) {
  const std::vector<float> matrices = Joined({Generate(16, 2), Generate(16, 4), Generate(16, 6)});
  const std::vector<float> no_bias(12, 0.0f);
  ArticleServer fast = Serve({json::object({{"attention", "causal_linear"}}), matrices, no_bias});
  ExpectContexts(fast, ThreeTokens(), {.70875659, -.80481547, 1.05625680, .08503829});
  EXPECT_EQ(fast.Model().layer().attention(), "causal_linear");

  ArticleServer mixed = Serve(
      {{{"attention", "linformer"}, {"key_mixing", "layers.{layer}.E"}, {"value_mixing", "F"}},
       matrices,
       no_bias,
       {Generated("layers.0.E", {2, 3}, 20), Generated("layers.1.E", {2, 3}, 20),
        Generated("F", {2, 3}, 21)}});
  ExpectContexts(mixed, ThreeTokens(), {.15008179, -.03119180, .35343990, -.21491994});

  ArticleServer collaborating =
      Serve({{{"num_heads", 2}, {"mixing", "mixing"}, {"content_bias", "content_bias"}},
             Joined({Generate(12, 2), Generate(12, 4), Generate(16, 6)}),
             Joined({std::vector<float>(6, 0.0f), Generate(4, 7)}),
             {Generated("mixing", {2, 3}, 8), Generated("content_bias", {2, 4}, 9)}});
  ExpectContexts(collaborating, RequestOf({2, 3, 4}, Generate(24, 1)),
                 {1.05479450, .28463232, -.20063469, -.78708965});

  ArticleServer banded = Serve({{{"num_heads", 2}, {"window", 1}, {"first_global", 1}},
                                Joined({Generate(16, 2), Generate(16, 4), Generate(16, 6)}),
                                Joined({Generate(4, 3), Generate(4, 5), Generate(4, 7)})});
  ExpectContexts(banded, RequestOf({1, 8, 4}, Generate(32, 1)),
                 {.77090998, .63178696, -.32282805, -.57930440});

  // A list may name the global token as well.
  ArticleServer listed = Serve({{{"num_heads", 2}, {"window", 1}, {"global_blocks", {0}}},
                                Joined({Generate(16, 2), Generate(16, 4), Generate(16, 6)}),
                                Joined({Generate(4, 3), Generate(4, 5), Generate(4, 7)})});
  ExpectContexts(listed, RequestOf({1, 8, 4}, Generate(32, 1)),
                 {.77090998, .63178696, -.32282805, -.57930440});
}

// Later tokens have written nothing yet, in any layer.
TEST(TenPlusOneInsights, AStackOfFastWeightsIsCausal) {
  ArticleServer server = Serve({json::object({{"attention", "causal_linear"}}),
                                Joined({Generate(16, 2), Generate(16, 4), Generate(16, 6)}),
                                std::vector<float>(12, 0.0f)});
  v1::EncodeRequest five, three;
  *five.mutable_hidden_states() = FloatTensor({1, 5, 4}, Generate(20, 1));
  *three.mutable_hidden_states() = FloatTensor({1, 3, 4}, Generate(12, 1));
  const std::vector<float> whole = server.Encoded(five);
  EXPECT_EQ(server::Rows(whole, 4, 0, 3), server.Encoded(three));
  EXPECT_EQ(server.EncodedInParts(Generate(20, 1), 4, 2), whole);
}

}  // namespace ten_plus_one_kinds_test
}  // namespace attendant::articles
