// Tests of a tiny checkpoint of each family, from its files to its answers, against the formulas in
// float64.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/checkpoint/checkpoint.h"
#include "tests/engine/checkpoint/tiny_families.h"
#include "tests/reference/encoder.h"
#include "tests/support/engine_calls.h"
#include "tests/support/random_values.h"

namespace attendant::test_support {
namespace families_test {

class TinyFamilyTest : public ::testing::TestWithParam<TinyFamily> {
 protected:
  void SetUp() override {
    WriteFamily(folder_, GetParam());
    absl::StatusOr<Checkpoint> checkpoint = OpenCheckpoint(folder_.path(), {});
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    checkpoint_ = *std::move(checkpoint);
  }

  // Returns the rows [length, E] that enter layer 0.
  std::vector<double> Entering(int64_t length, EncoderRun& run, int64_t first_row) {
    const ModelDescription& model = checkpoint_.description;
    if (!model.embeddings) {
      const Sequence rows = RandomSequences({length}, model.layer.hidden_size, 5).front();
      std::copy(rows.begin(), rows.end(), run.input().row(first_row));
      return {rows.begin(), rows.end()};
    }
    reference::TokenSequence ids;
    for (int32_t i = 0; i < length; ++i) {
      ids.words.push_back((i * 7 + 3) % 10);
      ids.positions.push_back(static_cast<int32_t>(model.embeddings->first_position) + i);
      ids.token_types.push_back(i % 2);
    }
    if (model.embeddings->token_types == 0) ids.token_types.clear();
    run.Embed({.words = ids.words, .positions = ids.positions, .token_types = ids.token_types},
              first_row);
    return reference::Encoder(model, *checkpoint_.weights).Embed(ids);
  }

  TempFolder folder_;
  Checkpoint checkpoint_;
};

TEST_P(TinyFamilyTest, MatchesFloat64) {
  const ModelDescription& model = checkpoint_.description;
  EncoderRun run(LoadEncoder(model, *checkpoint_.weights), 32, 2);
  std::vector<std::vector<double>> exact = {Entering(9, run, 0), Entering(1, run, 9),
                                            Entering(13, run, 10)};
  const std::vector<int32_t> bounds = {0, 9, 10, 23};
  // The second sequence follows padding, and the third has holes.
  std::vector<std::vector<int32_t>> positions(3);
  for (int32_t i = 0; i < 9; ++i) positions[0].push_back(i);
  positions[1] = {6};
  for (int32_t i = 0; i < 13; ++i) positions[2].push_back(2 * i + i / 5);
  std::vector<int32_t> flat;
  for (const auto& one : positions) flat.insert(flat.end(), one.begin(), one.end());
  RunObserver nobody;
  const auto result =
      run.Encode(0, model.layers, {.cu_seqlens = bounds, .bias = {}, .positions = flat}, nobody);
  ASSERT_TRUE(result.ok()) << result.status();
  exact = reference::Encoder(model, *checkpoint_.weights).Encode(std::move(exact), positions);
  double largest = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    for (size_t j = 0; j < exact[i].size(); ++j) {
      const double size = std::max(1.0, std::abs(exact[i][j]));
      const double error = std::abs(exact[i][j] - result->row(bounds[i])[j]) / size;
      if (!(error <= largest)) largest = error;
    }
  }
  EXPECT_LE(largest, 5e-5);
}

INSTANTIATE_TEST_SUITE_P(Tiny, TinyFamilyTest, ::testing::ValuesIn(TinyFamilies()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace families_test
}  // namespace attendant::test_support
