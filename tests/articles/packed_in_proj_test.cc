// Tests of "Packed in_proj": torch's nn.MultiheadAttention, whose in_proj_weight [3E, E] holds
// queries, keys and values above each other, and which takes sequences first, [S, B, E].
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/articles/article_server.h"
#include "tests/support/random_values.h"
#include "tests/support/test_vectors.h"

namespace attendant::articles {
namespace packed_in_proj_test {

using attendant::test_support::Generate;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kSequences = 2, kLength = 3, kWidth = 4;

json Description(int num_heads) {
  return {{"module", "nn.MultiheadAttention"},
          {"file", "weights.safetensors"},
          {"num_heads", num_heads}};
}

std::vector<TestTensor> StateDict(bool has_bias) {
  std::vector<TestTensor> tensors = {Generated("in_proj_weight", {12, 4}, 2),
                                     Generated("out_proj.weight", {4, 4}, 3)};
  if (has_bias) {
    tensors.push_back(Generated("in_proj_bias", {12}, 4));
    tensors.push_back(Generated("out_proj.bias", {4}, 5));
  }
  return tensors;
}

// Returns the module's input or output [S, B, E] as [B, S, E].
std::vector<float> BatchFirst(const std::vector<float>& sequence_first) {
  std::vector<float> batch_first;
  for (int64_t b = 0; b < kSequences; ++b) {
    for (int64_t s = 0; s < kLength; ++s) {
      const auto row = sequence_first.begin() + (s * kSequences + b) * kWidth;
      batch_first.insert(batch_first.end(), row, row + kWidth);
    }
  }
  return batch_first;
}

v1::AttendRequest Request(const std::vector<float>& values) {
  return RequestOf({kSequences, kLength, kWidth}, values, v1::PROJECTED);
}

// Returns the request in the layout that the module takes.
v1::AttendRequest SequenceFirst(const std::vector<float>& values) {
  v1::AttendRequest request = RequestOf({kLength, kSequences, kWidth}, values, v1::PROJECTED);
  request.set_layout(v1::SEQUENCE_FIRST);
  return request;
}

// F19, TV5a: made with bias=False, as the article prints it.
TEST(PackedInProj, WithoutBias) {
  ArticleServer server(Description(2), StateDict(false));
  ExpectRow(server.Output(SequenceFirst(Generate(24, 1))), 0,
            {-.09132727, -.59539912, -.17084249, .42404682});
}

// F19, TV5b: torch's default has biases, which the article leaves out.
TEST(PackedInProj, WithBias) {
  ArticleServer server(Description(2), StateDict(true));
  ExpectRow(server.Output(SequenceFirst(Generate(24, 1))), 0,
            {.30182899, .33160645, -1.21936329, .38637546});
}

// F28: the module's second result: with average_attn_weights, its default, the mean over the heads.
TEST(PackedInProj, AttentionWeightsOfEachHeadAndOnAverage) {
  ArticleServer server(Description(2), StateDict(true));
  v1::AttendRequest request = Request(BatchFirst(Generate(24, 1)));
  const std::vector<float> heads = server.Probabilities(request);
  request.set_attention_form(v1::HEAD_MEAN);
  const std::vector<float> mean = server.Probabilities(request);
  ASSERT_EQ(mean.size(), kSequences * kLength * kLength);
  for (int64_t b = 0; b < kSequences; ++b) {
    for (int64_t s = 0; s < kLength; ++s) {
      double sum = 0;
      for (int64_t t = 0; t < kLength; ++t) {
        const int64_t pair = s * kLength + t;
        const float first = heads[2 * b * 9 + pair], second = heads[(2 * b + 1) * 9 + pair];
        EXPECT_NEAR(mean[b * 9 + pair], (first + second) / 2, 1e-7);
        sum += mean[b * 9 + pair];
      }
      EXPECT_NEAR(sum, 1, 1e-6);
    }
  }
}

// F20, TV5c: one head, scaled by 1 / sqrt(E).
TEST(PackedInProj, OneHead) {
  ArticleServer server(Description(1), StateDict(false));
  ExpectRow(server.Output(SequenceFirst(Generate(24, 1))), 0,
            {-.06441648, -.45047463, -.23128094, .45196827});
}

// F19: the module's own layout and that of batch_first=True give the same bits, each in its own
// order.
TEST(PackedInProj, SequenceFirstEqualsBatchFirst) {
  ArticleServer server(Description(2), StateDict(true));
  const std::vector<float> values = Generate(24, 1);
  const v1::AttendResponse response = server.Attend(SequenceFirst(values));
  EXPECT_THAT(server::ShapeOf(response.output()), ElementsAre(kLength, kSequences, kWidth));
  EXPECT_EQ(BatchFirst(ToFloats(response.output())), server.Output(Request(BatchFirst(values))));
}

// Bytes that are read with the first two dimensions swapped give another answer, either way.
TEST(PackedInProj, SequenceFirstIsNotBatchFirst) {
  ArticleServer server(Description(2), StateDict(false));
  const std::vector<float> values = Generate(24, 1);
  const std::vector<float> module = server.Output(SequenceFirst(values));
  EXPECT_GT(LargestDifference(module, server.Output(SequenceFirst(BatchFirst(values)))), 0.1);
  EXPECT_GT(LargestDifference(BatchFirst(module), server.Output(Request(values))), 0.1);
}

// F8, F18: head h owns the rows h D to h D + D - 1 of each third; two narrow heads are not one wide
// head.
TEST(PackedInProj, HeadsAreSlicesOfTheirThird) {
  const std::vector<float> in_proj = Generate(48, 2);
  std::vector<TestTensor> narrow = {Generated("out_proj", {4, 4}, 3)};
  for (int64_t third = 0; third < 3; ++third) {
    for (int64_t head = 0; head < 2; ++head) {
      const auto begin = in_proj.begin() + (third * 4 + head * 2) * 4;
      const std::string name = std::string(1, "qkv"[third]) + std::to_string(head);
      narrow.push_back(WithValues(name, {2, 4}, {begin, begin + 8}));
    }
  }
  const json description = {{"module", "attention"}, {"file", "weights.safetensors"},
                            {"num_heads", 2},        {"weight_layout", "out_in"},
                            {"query", "q{head}"},    {"key", "k{head}"},
                            {"value", "v{head}"},    {"output", "out_proj"}};
  ArticleServer packed(Description(2), StateDict(false)), split(description, narrow);
  ArticleServer one_head(Description(1), StateDict(false));
  const v1::AttendRequest request = Request(BatchFirst(Generate(24, 1)));
  EXPECT_EQ(packed.Output(request), split.Output(request));
  EXPECT_GT(LargestDifference(packed.Output(request), one_head.Output(request)), 0.01);
}

// The article merges batch and heads into one axis, batch first; a mask tiled the other way would
// mask keys of other sequences. Each sequence equals itself alone.
TEST(PackedInProj, AMaskBelongsToItsSequence) {
  ArticleServer server(Description(2), StateDict(true));
  const std::vector<float> values = BatchFirst(Generate(24, 1));
  v1::AttendRequest padded = Request(values);
  padded.add_lengths(1);
  padded.add_lengths(3);
  const std::vector<float> output = server.Output(padded);
  const std::vector<float> first = {values.begin(), values.begin() + 4};
  const std::vector<float> second = {values.begin() + 12, values.end()};
  EXPECT_EQ(server::Rows(output, kWidth, 0, 1),
            server.Output(RequestOf({1, 1, 4}, first, v1::PROJECTED)));
  EXPECT_EQ(server::Rows(output, kWidth, 3, 3),
            server.Output(RequestOf({1, 3, 4}, second, v1::PROJECTED)));
}

// F50: with kdim or vdim, the module has three weights and takes keys and values of their own
// widths. Padded with zero columns, these weights are those of a packed module.
TEST(PackedInProj, KeysAndValuesOfTheirOwnWidths) {
  const std::vector<float> in_proj = Generate(48, 2);
  std::vector<TestTensor> own = {
      WithValues("q_proj_weight", {4, 4}, {in_proj.begin(), in_proj.begin() + 16}),
      Generated("in_proj_bias", {12}, 4), Generated("out_proj.weight", {4, 4}, 3),
      Generated("out_proj.bias", {4}, 5)};
  const int64_t widths[] = {2, 3};  // the widths of keys and of values
  v1::AttendRequest narrow = Request(BatchFirst(Generate(24, 1))), padded = narrow;
  for (int64_t i = 0; i < 2; ++i) {
    std::vector<float> weight, rows, zeros_behind;
    for (int64_t r = 0; r < 4; ++r) {
      const auto row = in_proj.begin() + (4 * (i + 1) + r) * 4;
      weight.insert(weight.end(), row, row + widths[i]);
    }
    own.push_back(WithValues(i == 0 ? "k_proj_weight" : "v_proj_weight", {4, widths[i]}, weight));
    for (int64_t r = 0; r < 2 * 5; ++r) {
      const std::vector<float> row = Generate(widths[i], 50 + 10 * i + r);
      rows.insert(rows.end(), row.begin(), row.end());
      zeros_behind.insert(zeros_behind.end(), row.begin(), row.end());
      zeros_behind.resize((r + 1) * 4);
    }
    const auto put = [&](v1::AttendRequest& request, int64_t width, const std::vector<float>& to) {
      v1::Memory& memory = *request.mutable_memory();
      *(i == 0 ? memory.mutable_hidden_states() : memory.mutable_values()) =
          FloatTensor({2, 5, width}, to);
    };
    put(narrow, widths[i], rows);
    put(padded, 4, zeros_behind);
  }
  ArticleServer unequal(Description(2), own), packed(Description(2), StateDict(true));
  EXPECT_LT(LargestDifference(unequal.Output(narrow), packed.Output(padded)), kTolerance);
  EXPECT_EQ(unequal.Model().layer().key_input_width(), 2);
  EXPECT_EQ(unequal.Model().layer().value_input_width(), 3);
  narrow.clear_memory();
  EXPECT_THAT(unequal.TryAttend(narrow).error_message(),
              HasSubstr("memory: expected a memory with keys of "));
}

// F9: embed_dim must be divisible by num_heads.
TEST(PackedInProj, HeadsDivideTheWidth) {
  EXPECT_THAT(Refusal(Description(3), StateDict(false)),
              HasSubstr("num_heads: expected a divisor of the width 4; got 3"));
}

// The article writes in_proj_weights and out_proj_weights; the names in the module have no final s.
TEST(PackedInProj, RealNamesOnly) {
  EXPECT_THAT(Refusal(Description(2), {Generated("in_proj_weights", {12, 4}, 2),
                                       Generated("out_proj_weights", {4, 4}, 3)}),
              HasSubstr("out_proj.weight"));
}

// Returns the variance of the scores of 256 tokens to each other, which are 64 wide and have
// elements of variance 1. It is derived from the softmax, row by row, without the score of a token
// to itself.
double VarianceOfScores(double score_scale) {
  constexpr int64_t kTokens = 256, kColumns = 64;
  ArticleServer server({{"module", "attention"},
                        {"num_heads", 1},
                        {"hidden_size", kColumns},
                        {"score_scale", score_scale}},
                       {});
  v1::AttendRequest request =
      RequestOf({1, kTokens, kColumns}, RandomValues(kTokens * kColumns, 7, std::sqrt(3.0f)));
  std::vector<float> bias(kTokens * kTokens, 0.0f);
  for (int64_t i = 0; i < kTokens; ++i) {
    bias[i * kTokens + i] = -std::numeric_limits<float>::infinity();
  }
  *request.mutable_attention_bias() = FloatTensor({1, 1, kTokens, kTokens}, bias);
  const std::vector<float> probabilities = server.Probabilities(request);
  double variance = 0;
  for (int64_t i = 0; i < kTokens; ++i) {
    double sum = 0, squares = 0;
    for (int64_t j = 0; j < kTokens; ++j) {
      if (i == j) continue;
      const double score = std::log(static_cast<double>(probabilities[i * kTokens + j]));
      sum += score;
      squares += score * score;
    }
    variance += (squares - sum * sum / (kTokens - 1)) / (kTokens - 2) / kTokens;
  }
  return variance;
}

// F11: products of vectors of width d have variance d, which is why they are divided by its square
// root.
TEST(PackedInProj, ScoresHaveTheVarianceOfTheWidthUntilTheyAreScaled) {
  EXPECT_NEAR(VarianceOfScores(1), 64, 0.03 * 64);
  EXPECT_NEAR(VarianceOfScores(1 / std::sqrt(64.0)), 1, 0.03);
}

}  // namespace packed_in_proj_test
}  // namespace attendant::articles
