#include <cmath>
#include <vector>

#include "engine/kernels/attention/attention.h"
#include "engine/kernels/attention/relative_positions.h"
#include "gtest/gtest.h"
#include "tests/reference/reference.h"
#include "tests/reference/relative_positions.h"
#include "tests/support/random_values.h"

namespace attendant {
namespace relative_scores_test {

using reference::Matrix;

TEST(DistanceRowsTest, AreThoseOfTheModelsThatLearnedThem) {
  constexpr int64_t kMiddle = 3000;
  for (const auto& [buckets, max_distance] : std::vector<std::pair<int64_t, int64_t>>{
           {256, 512}, {2, 10}, {3, 10}, {4, 20}, {32, 40}, {64, 2048}, {0, 7}, {0, 512}}) {
    std::vector<int32_t> rows(2 * kMiddle + 1);
    FillDistanceRows(buckets, max_distance, absl::MakeSpan(rows));
    for (int64_t distance = -kMiddle; distance <= kMiddle; ++distance) {
      ASSERT_EQ(rows[kMiddle + distance], reference::DistanceRow(distance, buckets, max_distance))
          << distance << " of " << buckets << " up to " << max_distance;
    }
  }
}

// The results of the library's own code for 256 buckets up to 512, as the published models have.
TEST(DistanceRowsTest, AreThoseOfThePublishedModels) {
  std::vector<int32_t> rows(2 * 1000 + 1);
  FillDistanceRows(256, 512, absl::MakeSpan(rows));
  const std::vector<std::pair<int64_t, int32_t>> expected = {
      {0, 256},   {1, 257},   {-1, 255},  {127, 383}, {128, 384}, {-128, 128}, {129, 385},
      {200, 425}, {-200, 87}, {300, 463}, {-511, 1},  {511, 511}, {600, 511},  {-600, 0}};
  for (const auto& [distance, row] : expected) EXPECT_EQ(rows[1000 + distance], row) << distance;
}

// One sequence of H heads whose distances are rows of a table.
struct Case {
  int64_t length, heads, width, buckets, max_distance;
  bool scores_queries, scores_keys;
  int64_t window = 0;
  std::vector<int32_t> positions = {};
};

class RelativeScoresTest : public testing::TestWithParam<Case> {};

TEST_P(RelativeScoresTest, MatchesTheFormula) {
  const Case& c = GetParam();
  const int64_t width = c.heads * c.width, rows = 2 * (c.buckets > 0 ? c.buckets : c.max_distance);
  const std::vector<float> qkv = RandomValues(c.length * 3 * width, 1, 2.0f);
  const std::vector<float> keys = RandomValues(rows * width, 2, 2.0f);
  const std::vector<float> queries = RandomValues(rows * width, 3, 2.0f);
  const MatrixView<const float> all = ViewOf(qkv, c.length, 3 * width);
  const int64_t middle = c.positions.empty() ? c.length - 1 : c.positions.back();
  std::vector<int32_t> row_of(2 * middle + 1);
  FillDistanceRows(c.buckets, c.max_distance, absl::MakeSpan(row_of));

  AttentionInput input = {all.Columns(0, width), all.Columns(width, width),
                          all.Columns(2 * width, width)};
  if (c.scores_queries) input.relative.keys = ViewOf(keys, rows, width);
  if (c.scores_keys) input.relative.queries = ViewOf(queries, rows, width);
  input.relative.row_of = row_of.data();
  input.relative.middle = middle;
  const AttentionShape shape = {{.heads = c.heads,
                                 .key_width = c.width,
                                 .value_width = c.width,
                                 .score_scale = 0.1f,
                                 .window = c.window},
                                rows};
  const AttentionSequence sequence = {.row_begin = 0, .length = c.length, .positions = c.positions};
  std::vector<float> context(c.length * width);
  AttentionWorkspace workspace(2, shape, c.length);
  Attention(ThreadTeam(2), shape, input, {sequence}, ViewOf(context, c.length, width), workspace);

  // The terms of the table as a bias.
  const auto position = [&](int64_t i) { return c.positions.empty() ? i : c.positions[i]; };
  for (int64_t h = 0; h < c.heads; ++h) {
    Matrix bias(c.length, c.length);
    for (int64_t s = 0; s < c.length; ++s) {
      for (int64_t t = 0; t < c.length; ++t) {
        const int64_t distance = position(s) - position(t);
        const int64_t row = reference::DistanceRow(distance, c.buckets, c.max_distance);
        double sum = c.window > 0 && std::abs(distance) > c.window ? -HUGE_VAL : 0;
        for (int64_t j = h * c.width; j < (h + 1) * c.width; ++j) {
          if (c.scores_queries) sum += 0.1 * all.row(s)[j] * keys[row * width + j];
          if (c.scores_keys) sum += 0.1 * all.row(t)[width + j] * queries[row * width + j];
        }
        bias(s, t) = sum;
      }
    }
    const auto head = [&](int64_t part) {
      return Matrix(all.Columns(part * width + h * c.width, c.width));
    };
    const Matrix expected = reference::AttendHead(shape, head(0), head(1), head(2), bias).context;
    EXPECT_LT(reference::MaxDifference(
                  expected, ViewOf(context, c.length, width).Columns(h * c.width, c.width)),
              4e-6)
        << h;
  }
}

std::vector<int32_t> Holed(int32_t length) {
  std::vector<int32_t> positions;
  for (int32_t i = 0; i < length; ++i) positions.push_back(3 * i + i / 4 + 5);
  return positions;
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, RelativeScoresTest,
    ::testing::ValuesIn(std::vector<Case>{
        Case{1, 2, 16, 8, 30, true, true}, Case{40, 3, 26, 8, 30, true, true},
        Case{130, 2, 16, 256, 512, true, true}, Case{65, 1, 5, 0, 11, true, true},
        Case{65, 2, 16, 0, 200, false, true}, Case{33, 2, 16, 4, 20, true, false},
        Case{1100, 1, 8, 32, 600, true, true}, Case{600, 1, 8, 16, 100, true, true, 50},
        Case{130, 2, 16, 16, 100, true, true, 0, Holed(130)},
        Case{90, 2, 16, 16, 100, true, true, 20, Holed(90)}}));

}  // namespace relative_scores_test
}  // namespace attendant
