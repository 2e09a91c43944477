// Tests of "Module-list heads": every head is a module with linear layers of its own, from d_in to
// d_out; their outputs are concatenated and go through one more linear layer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "tests/articles/article_server.h"
#include "tests/support/test_vectors.h"

namespace attendant::articles {
namespace module_list_heads_test {

using attendant::test_support::Generate;
using nlohmann::json;

const json kDescription = {{"module", "attention"},
                           {"file", "weights.safetensors"},
                           {"num_heads", 2},
                           {"weight_layout", "out_in"},
                           {"query", "heads.{head}.Q"},
                           {"key", "heads.{head}.K"},
                           {"value", "heads.{head}.V"},
                           {"output", "linear"}};

// The state dict: d_in = 3, d_out = 2, two heads.
std::vector<TestTensor> StateDict() {
  std::vector<TestTensor> tensors;
  for (int64_t head = 0; head < 2; ++head) {
    int64_t seed = 10 * head + 2;
    for (const char* part : {"Q", "K", "V"}) {
      const std::string name = absl::StrCat("heads.", head, ".", part);
      tensors.push_back(Generated(name + ".weight", {2, 3}, seed++));
      tensors.push_back(Generated(name + ".bias", {2}, seed++));
    }
  }
  tensors.push_back(Generated("linear.weight", {2, 4}, 30));
  tensors.push_back(Generated("linear.bias", {2}, 31));
  return tensors;
}

v1::AttendRequest Request(v1::AttendStage stage) {
  return RequestOf({2, 3, 3}, Generate(18, 1), stage);
}

// F17, TV7: d_in differs from d_out, and the number of heads times d_out from d_in.
TEST(ModuleListHeads, AreServedFromTheirStateDict) {
  ArticleServer server(kDescription, StateDict());
  const v1::AttendResponse response = server.Attend(Request(v1::PROJECTED));
  EXPECT_EQ(server::ShapeOf(response.output()), (std::vector<int64_t>{2, 3, 2}));
  const std::vector<float> output = ToFloats(response.output());
  ExpectRow(output, 0, {-.05659842, .25848664});
  double sum = 0;
  for (const float element : output) sum += element;
  EXPECT_NEAR(sum, -1.16261535, 12 * kTolerance);
}

// The context is the concatenation before the last linear layer.
TEST(ModuleListHeads, ConcatenateInTheContext) {
  ArticleServer server(kDescription, StateDict());
  EXPECT_EQ(server::ShapeOf(server.Attend(Request(v1::CONTEXT)).output()),
            (std::vector<int64_t>{2, 3, 4}));
}

// F18: narrow linear layers are slices of a wide one.
TEST(ModuleListHeads, EqualOnePackedProjection) {
  std::vector<TestTensor> packed = {Generated("linear.weight", {2, 4}, 30),
                                    Generated("linear.bias", {2}, 31)};
  int64_t seed = 2;
  for (const char* part : {"Q", "K", "V"}) {
    std::vector<float> weight = Generate(6, seed), bias = Generate(2, seed + 1);
    for (const float element : Generate(6, 10 + seed)) weight.push_back(element);
    for (const float element : Generate(2, 10 + seed + 1)) bias.push_back(element);
    packed.push_back(WithValues(absl::StrCat(part, ".weight"), {4, 3}, weight));
    packed.push_back(WithValues(absl::StrCat(part, ".bias"), {4}, bias));
    seed += 2;
  }
  json description = kDescription;
  description["query"] = "Q";
  description["key"] = "K";
  description["value"] = "V";
  ArticleServer narrow(kDescription, StateDict()), wide(description, packed);
  EXPECT_EQ(narrow.Output(Request(v1::PROJECTED)), wide.Output(Request(v1::PROJECTED)));
}

std::vector<int32_t> ToIntegers(const v1::Tensor& tensor) {
  std::vector<int32_t> values(tensor.data().size() / sizeof(int32_t));
  std::memcpy(values.data(), tensor.data().data(), tensor.data().size());
  return values;
}

// F28: the directed graph of the article, where the edges that leave a token have a total weight of
// 1, including the edge to itself.
TEST(ModuleListHeads, AttentionIsAWeightedGraph) {
  ArticleServer server(kDescription, StateDict());
  const std::vector<float> probabilities = server.Probabilities(Request(v1::CONTEXT));
  ASSERT_EQ(probabilities.size(), 2u * 2 * 3 * 3);
  for (size_t row = 0; row < probabilities.size(); row += 3) {
    EXPECT_NEAR(probabilities[row] + probabilities[row + 1] + probabilities[row + 2], 1, 1e-6);
  }

  // The edges: the two heaviest that leave each token, and the tokens that they lead to.
  v1::AttendRequest request = Request(v1::CONTEXT);
  request.set_return_attention_probabilities(true);
  request.set_attention_form(v1::TOP_KEYS);
  request.set_attention_top_k(2);
  const v1::AttendResponse response = server.Attend(request);
  const std::vector<float> edges = ToFloats(response.attention_probabilities());
  EXPECT_EQ(server::ShapeOf(response.attention_keys()), (std::vector<int64_t>{2, 2, 3, 2}));
  const std::vector<int32_t> keys = ToIntegers(response.attention_keys());
  ASSERT_EQ(edges.size(), 2u * 2 * 3 * 2);
  ASSERT_EQ(keys.size(), edges.size());
  for (size_t query = 0; query < edges.size() / 2; ++query) {
    const auto row = probabilities.begin() + 3 * query;
    EXPECT_EQ(edges[2 * query], *std::max_element(row, row + 3));
    EXPECT_EQ(edges[2 * query], row[keys[2 * query]]);
    EXPECT_EQ(edges[2 * query + 1], row[keys[2 * query + 1]]);
    EXPECT_NEAR(1 - edges[2 * query] - edges[2 * query + 1], *std::min_element(row, row + 3), 1e-6);
  }
}

// The article's code requires three dimensions and has no mask; here, a sequence of a padded batch
// equals the sequence alone.
TEST(ModuleListHeads, TakeAMask) {
  ArticleServer server(kDescription, StateDict());
  v1::AttendRequest padded = Request(v1::PROJECTED);
  padded.add_lengths(3);
  padded.add_lengths(2);
  const std::vector<float> values = Generate(18, 1);
  const v1::AttendRequest alone =
      RequestOf({1, 2, 3}, {values.begin() + 9, values.begin() + 15}, v1::PROJECTED);
  EXPECT_EQ(server::Rows(server.Output(padded), 2, 3, 2), server.Output(alone));
}

}  // namespace module_list_heads_test
}  // namespace attendant::articles
