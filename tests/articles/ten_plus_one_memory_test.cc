// Tests of "Ten plus one insights": attention of one sequence to the rows of another.
#include <gtest/gtest.h>

#include <utility>

#include "tests/articles/article_server.h"
#include "tests/support/test_vectors.h"

namespace attendant::articles {
namespace ten_plus_one_memory_test {

using attendant::test_support::Generate;
using nlohmann::json;

json Projections() {
  return {{"module", "attention"}, {"file", "weights.safetensors"},
          {"num_heads", 1},        {"weight_layout", "out_in"},
          {"query", "query"},      {"key", "key"},
          {"value", "value"}};
}

// Four queries of one sequence and five rows of another, as the article draws them.
v1::AttendRequest FourQueries() { return RequestOf({1, 4, 3}, Generate(12, 1)); }
v1::Memory FiveRows() { return MemoryOf({1, 5, 3}, Generate(15, 2)); }

std::pair<double, double> Checksums(const std::vector<float>& values) {
  double sum = 0, squares = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
  }
  return {sum, squares};
}

// F21, TV8 and TV9: queries of one sequence attend to keys and values of another.
TEST(TenPlusOneInsights, CrossAttentionToAGivenMemory) {
  v1::AttendRequest request = FourQueries();
  *request.mutable_memory() = FiveRows();
  ArticleServer square(Projections(), {Generated("query", {3, 3}, 3), Generated("key", {3, 3}, 4),
                                       Generated("value", {3, 3}, 5)});
  std::vector<float> output = square.Output(request);
  ExpectRow(output, 0, {-.28421573, .06901166, -.04723766});
  EXPECT_NEAR(Checksums(output).first, -1.13348455, 1e-5);
  EXPECT_NEAR(Checksums(output).second, .48977299, 1e-5);
  const std::vector<float> probabilities = square.Probabilities(request);
  ASSERT_EQ(probabilities.size(), 4u * 5u);
  for (int query = 0; query < 4; ++query) {
    EXPECT_NEAR(Checksums(server::Rows(probabilities, 5, query, 1)).first, 1, 1e-6);
  }
  ArticleServer wide(Projections(), {Generated("query", {2, 3}, 3), Generated("key", {2, 3}, 4),
                                     Generated("value", {5, 3}, 5)});
  output = wide.Output(request);
  ExpectRow(output, 0, {-.28386889, .06871633, -.06965158, .07497063, .05513555});
  EXPECT_NEAR(Checksums(output).first, -1.04183868, 1e-5);
  EXPECT_NEAR(Checksums(output).second, 1.08949226, 1e-5);
}

// F21: with the sequence itself as its memory, it is self-attention. The article's "keys and
// vectors" are keys and values, which come from the same rows unless the request says otherwise.
TEST(TenPlusOneInsights, OwnRowsAsMemoryAreSelfAttention) {
  ArticleServer server(Projections(), {Generated("query", {4, 4}, 2), Generated("key", {4, 4}, 4),
                                       Generated("value", {4, 4}, 6)});
  v1::AttendRequest request = RequestOf({1, 3, 4}, Generate(12, 1));
  const std::vector<float> own = server.Output(request);
  *request.mutable_memory() = MemoryOf({1, 3, 4}, Generate(12, 1));
  EXPECT_EQ(server.Output(request), own);
  *request.mutable_memory()->mutable_values() = FloatTensor({1, 3, 4}, Generate(12, 9));
  EXPECT_GT(LargestDifference(server.Output(request), own), 0.1);
}

// F22: the encoder's output is projected once, and many requests attend to it.
TEST(TenPlusOneInsights, CrossAttentionToARegisteredMemory) {
  ArticleServer server(Projections(), {Generated("query", {3, 3}, 3), Generated("key", {3, 3}, 4),
                                       Generated("value", {3, 3}, 5)});
  const std::string handle = server.PutMemory(FiveRows());
  for (const int64_t seed : {1, 7, 8}) {
    v1::AttendRequest given = RequestOf({1, 4, 3}, Generate(12, seed)), registered = given;
    *given.mutable_memory() = FiveRows();
    registered.set_memory_handle(handle);
    EXPECT_EQ(server.Output(registered), server.Output(given));
  }
}

// F29, TV17: the older, additive score between a query and a row of the memory.
TEST(TenPlusOneInsights, AdditiveScoresOfAMemory) {
  json description = Projections();
  description["attention"] = "additive";
  description["score"] = "score";
  ArticleServer server(description, {Generated("query", {3, 3}, 3), Generated("key", {3, 3}, 4),
                                     Generated("value", {3, 3}, 5), Generated("score", {3}, 6)});
  v1::AttendRequest request = FourQueries();
  *request.mutable_memory() = FiveRows();
  const std::vector<float> output = server.Output(request);
  ExpectRow(output, 0, {-.27815592, .06445485, .00665376});
  EXPECT_NEAR(Checksums(output).first, -.75850940, 1e-5);
  EXPECT_NEAR(Checksums(output).second, .31258521, 1e-5);
}

// Another sequence may write the fast weights, in any parts: they are the sum of key x value over
// all of its rows, which is multiplied by the query. The causal kind concerns the places in one
// sequence.
TEST(TenPlusOneInsights, LinearAttentionToAMemory) {
  json description = Projections();
  description["attention"] = "linear";
  const std::vector<TestTensor> tensors = {
      Generated("query", {3, 3}, 3), Generated("key", {3, 3}, 4), Generated("value", {3, 3}, 5)};
  ArticleServer server(description, tensors);
  v1::AttendRequest whole = FourQueries(), first = whole, rest = whole;
  const std::vector<float> rows = Generate(15, 2);
  *whole.mutable_memory() = MemoryOf({1, 5, 3}, rows);
  *first.mutable_memory() = MemoryOf({1, 2, 3}, {rows.begin(), rows.begin() + 6});
  *rest.mutable_memory() = MemoryOf({1, 3, 3}, {rows.begin() + 6, rows.end()});
  std::vector<float> sum = server.Output(first);
  const std::vector<float> other = server.Output(rest);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += other[i];
  EXPECT_GT(LargestDifference(sum, other), 0.01);
  EXPECT_LT(LargestDifference(server.Output(whole), sum), kTolerance);
  description["attention"] = "causal_linear";
  ArticleServer causal(description, tensors);
  const grpc::Status status = causal.TryAttend(whole);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(),
            "memory: not supported by this layer: its causal_linear attention depends on positions "
            "in one sequence");
}

}  // namespace ten_plus_one_memory_test
}  // namespace attendant::articles
