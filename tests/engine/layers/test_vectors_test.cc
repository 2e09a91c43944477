// Tests of the engine with the test vectors of tests/support/test_vectors.h. As in the server, only
// kept tokens go in, and padded rows come back as zeros.
#include "tests/support/test_vectors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/engine_calls.h"

namespace attendant::test_support {
namespace test_vectors_test {

// The places of the kept tokens of a padded batch.
struct KeptTokens {
  std::vector<int32_t> rows;       // rows of [B S, E]
  std::vector<int32_t> positions;  // positions in the padded rows
  std::vector<int32_t> cu_seqlens = {0};
};

KeptTokens FindKept(const TestVector& vector) {
  KeptTokens kept;
  for (int64_t b = 0; b < vector.batch; ++b) {
    for (int64_t s = 0; s < vector.length; ++s) {
      const int64_t row = b * vector.length + s;
      if (!vector.attention_mask.empty() && vector.attention_mask[row] == 0) continue;
      kept.rows.push_back(static_cast<int32_t>(row));
      kept.positions.push_back(static_cast<int32_t>(s));
    }
    kept.cu_seqlens.push_back(static_cast<int32_t>(kept.rows.size()));
  }
  return kept;
}

absl::StatusOr<MatrixView<const float>> Call(const TestVector& vector, const PackedBatch& batch,
                                             EncoderRun& run) {
  RunObserver nobody;
  if (vector.stage) return run.Attend(0, *vector.stage, batch, nobody);
  return run.Encode(0, 1, batch, nobody);
}

// Returns the answer, [B S, width].
std::vector<std::vector<float>> Answer(const TestVector& vector) {
  MemoryWeights weights(vector.weights);
  EncoderRun run(LoadEncoder(vector.description, weights), vector.batch * vector.length, 2);
  const KeptTokens kept = FindKept(vector);
  const int64_t width = vector.description.layer.hidden_size;
  for (size_t i = 0; i < kept.rows.size(); ++i) {
    std::copy_n(&vector.hidden_states[kept.rows[i] * width], width, run.input().row(i));
  }
  const AttentionBias bias = {.data = vector.attention_bias.data(),
                              .head_stride = 0,
                              .query_stride = vector.length,
                              .key_stride = 1};
  std::vector<const AttentionBias*> bias_of_sequence;
  if (!vector.attention_bias.empty()) bias_of_sequence.assign(vector.batch, &bias);
  const auto result = Call(
      vector,
      {.cu_seqlens = kept.cu_seqlens, .bias = bias_of_sequence, .positions = kept.positions}, run);
  EXPECT_TRUE(result.ok()) << result.status();
  std::vector<std::vector<float>> answer(vector.batch * vector.length,
                                         std::vector<float>(result->cols, 0.0f));
  for (size_t i = 0; i < kept.rows.size(); ++i) {
    std::copy_n(result->row(i), result->cols, answer[kept.rows[i]].begin());
  }
  return answer;
}

class TestVectors : public ::testing::TestWithParam<TestVector> {};

TEST_P(TestVectors, Match) {
  const TestVector& vector = GetParam();
  const std::vector<std::vector<float>> answer = Answer(vector);
  for (size_t r = 0; r < vector.first_rows.size(); ++r) {
    ASSERT_EQ(answer[r].size(), vector.first_rows[r].size());
    for (size_t j = 0; j < answer[r].size(); ++j) {
      EXPECT_NEAR(answer[r][j], vector.first_rows[r][j], kTestVectorTolerance)
          << "row " << r << ", column " << j;
    }
  }
  double sum = 0;
  double sum_of_squares = 0;
  double magnitude = 0;
  for (const std::vector<float>& row : answer) {
    for (const double element : row) {
      sum += element;
      sum_of_squares += element * element;
      magnitude += std::abs(element);
    }
  }
  const auto elements = static_cast<double>(answer.size() * answer[0].size());
  if (vector.sum) {
    EXPECT_NEAR(sum, *vector.sum, kTestVectorTolerance * elements);
  }
  if (vector.sum_of_squares) {
    EXPECT_NEAR(sum_of_squares, *vector.sum_of_squares, kTestVectorTolerance * 2 * magnitude);
  }
}

std::string NameOf(const ::testing::TestParamInfo<TestVector>& info) {
  std::string name = info.param.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Engine, TestVectors, ::testing::ValuesIn(AllTestVectors()), NameOf);

}  // namespace test_vectors_test
}  // namespace attendant::test_support
