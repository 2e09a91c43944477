// Tests of easy misreadings of the articles' code and formulas. Each naive version here gives the
// server's numbers, and very different ones with one mistake in it.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/articles/article_server.h"
#include "tests/support/test_vectors.h"

namespace attendant::articles {
namespace misreadings_test {

using attendant::test_support::Generate;

constexpr int64_t kWidth = 4;      // E
constexpr double kMistaken = 0.1;  // a mistake makes at least this difference

std::vector<float> Linear(const std::vector<float>& x, int64_t weight_seed, int64_t bias_seed) {
  std::vector<float> y = Multiply(x, Generate(kWidth * kWidth, weight_seed), kWidth);
  const std::vector<float> bias = Generate(kWidth, bias_seed);
  for (size_t i = 0; i < y.size(); ++i) y[i] += bias[i % kWidth];
  return y;
}

struct Heads {
  int64_t count;
  double scale;
  bool transposed = true;  // [S, H, D] to [H, S, D]; else the elements keep their order
};

// Returns the context layer [S, E] of one sequence from projections [S, E].
std::vector<float> Context(const Heads& heads, const std::vector<float>& q,
                           const std::vector<float>& k, const std::vector<float>& v) {
  const auto length = static_cast<int64_t>(q.size()) / kWidth;
  const int64_t depth = kWidth / heads.count;
  const auto at = [&](int64_t head, int64_t row, int64_t column) {
    return heads.transposed ? row * kWidth + head * depth + column
                            : (head * length + row) * depth + column;
  };
  std::vector<float> context(q.size());
  for (int64_t head = 0; head < heads.count; ++head) {
    for (int64_t s = 0; s < length; ++s) {
      std::vector<double> weights(length);
      double sum = 0;
      for (int64_t t = 0; t < length; ++t) {
        double score = 0;
        for (int64_t i = 0; i < depth; ++i) score += q[at(head, s, i)] * k[at(head, t, i)];
        sum += weights[t] = std::exp(score * heads.scale);
      }
      for (int64_t t = 0; t < length; ++t) {
        for (int64_t i = 0; i < depth; ++i) {
          context[s * kWidth + head * depth + i] +=
              static_cast<float>(weights[t] / sum) * v[at(head, t, i)];
        }
      }
    }
  }
  return context;
}

// F8: heads are columns of every token. A reshape alone, [S, E] to [H, S, D], would mix tokens.
TEST(BertSourceWalk, ReshapingWithoutTransposingIsWrong) {
  std::vector<TestTensor> weights;
  int64_t seed = 2;
  for (const char* part : {"query", "key", "value"}) {
    weights.push_back(Generated(std::string(part) + ".weight", {kWidth, kWidth}, seed++));
    weights.push_back(Generated(std::string(part) + ".bias", {kWidth}, seed++));
  }
  ArticleServer server({{"module", "attention"},
                        {"file", "weights.safetensors"},
                        {"num_heads", 2},
                        {"weight_layout", "out_in"},
                        {"query", "query"},
                        {"key", "key"},
                        {"value", "value"}},
                       weights);
  const std::vector<float> x = Generate(3 * kWidth, 1);
  const std::vector<float> output = server.Output(RequestOf({1, 3, kWidth}, x));
  const std::vector<float> q = Linear(x, 2, 3), k = Linear(x, 4, 5), v = Linear(x, 6, 7);
  const double scale = 1 / std::sqrt(2.0);
  EXPECT_LT(LargestDifference(output, Context({2, scale}, q, k, v)), kTolerance);
  EXPECT_GT(LargestDifference(output, Context({2, scale, false}, q, k, v)), kMistaken);
}

// F19, TV5a and TV5b: scores are divided by the square root of the width of a head, not of the
// whole.
TEST(PackedInProj, ScalingByTheWholeWidthIsWrong) {
  for (const bool has_bias : {false, true}) {
    std::vector<TestTensor> weights = {Generated("in_proj_weight", {3 * kWidth, kWidth}, 2),
                                       Generated("out_proj.weight", {kWidth, kWidth}, 3)};
    std::vector<float> bias(3 * kWidth);
    if (has_bias) {
      bias = Generate(3 * kWidth, 4);
      weights.push_back(WithValues("in_proj_bias", {3 * kWidth}, bias));
      weights.push_back(Generated("out_proj.bias", {kWidth}, 5));
    }
    ArticleServer server(
        {{"module", "nn.MultiheadAttention"}, {"file", "weights.safetensors"}, {"num_heads", 2}},
        weights);
    // The module's input is [3, 2, 4], so every second row belongs to the first sequence.
    const std::vector<float> input = Generate(6 * kWidth, 1);
    std::vector<float> x, parts[3];
    for (int64_t s = 0; s < 3; ++s) {
      const std::vector<float> row = server::Rows(input, kWidth, 2 * s, 1);
      x.insert(x.end(), row.begin(), row.end());
    }
    for (int64_t part = 0; part < 3; ++part) {
      const std::vector<float> in_proj = Generate(3 * kWidth * kWidth, 2);
      parts[part] = Multiply(x, server::Rows(in_proj, kWidth, kWidth * part, kWidth), kWidth);
      for (size_t i = 0; i < x.size(); ++i) parts[part][i] += bias[part * kWidth + i % kWidth];
    }
    const std::vector<float> output = server.Output(RequestOf({1, 3, kWidth}, x));
    const auto context = [&](double width) {
      return Context({2, 1 / std::sqrt(width)}, parts[0], parts[1], parts[2]);
    };
    EXPECT_LT(LargestDifference(output, context(2)), kTolerance);
    EXPECT_GT(LargestDifference(output, context(4)), kMistaken) << has_bias;
  }
}

// Returns the sum of the fast weights over j up to i of v_j (key . q_i), where the key is that of j
// or, as the article prints it, that of i.
std::vector<float> FastWeights(const std::vector<float>& q, const std::vector<float>& k,
                               const std::vector<float>& v, bool has_key_of_query) {
  const auto length = static_cast<int64_t>(q.size()) / kWidth;
  std::vector<float> output(q.size());
  for (int64_t i = 0; i < length; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      const int64_t key = has_key_of_query ? i : j;
      double score = 0;
      for (int64_t d = 0; d < kWidth; ++d) score += q[i * kWidth + d] * k[key * kWidth + d];
      for (int64_t d = 0; d < kWidth; ++d) {
        output[i * kWidth + d] += static_cast<float>(score * v[j * kWidth + d]);
      }
    }
  }
  return output;
}

// F38, TV14: a value is written under the key of its own token.
TEST(TenPlusOneInsights, WritingEveryValueUnderTheLastKeyIsWrong) {
  ArticleServer server(
      {{"module", "attention"},
       {"file", "weights.safetensors"},
       {"num_heads", 1},
       {"weight_layout", "out_in"},
       {"query", "query"},
       {"key", "key"},
       {"value", "value"},
       {"attention", "causal_linear"}},
      {Generated("query", {kWidth, kWidth}, 2), Generated("key", {kWidth, kWidth}, 4),
       Generated("value", {kWidth, kWidth}, 6)});
  const std::vector<float> x = Generate(3 * kWidth, 1);
  const auto project = [&](int64_t seed) {
    return Multiply(x, Generate(kWidth * kWidth, seed), kWidth);
  };
  const std::vector<float> q = project(2), k = project(4), v = project(6);
  const std::vector<float> output = server.Output(RequestOf({1, 3, kWidth}, x));
  EXPECT_LT(LargestDifference(output, FastWeights(q, k, v, false)), 1e-5);
  EXPECT_GT(LargestDifference(output, FastWeights(q, k, v, true)), kMistaken);
}

}  // namespace misreadings_test
}  // namespace attendant::articles
