// Tests of attention to keys and values of other rows than the queries' own.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "engine/kernels/attention/attention.h"
#include "gmock/gmock.h"
#include "tests/reference/reference.h"
#include "tests/support/compute_modes.h"
#include "tests/support/random_values.h"

namespace attendant {
namespace attention_cross_kv_test {

using reference::Matrix;

constexpr int64_t kHeads = 2;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A batch whose sequences each have their own cross_kv, with rows of keys and values side by side
// like those of a projection, and `queries` rows of queries.
struct Sizes {
  int64_t queries;
  int64_t keys;
};

class Batch {
 public:
  Batch(const AttentionShape& shape, const std::vector<Sizes>& sizes, uint32_t seed = 1)
      : shape_(shape) {
    cross_kvs.reserve(sizes.size());
    for (const Sizes& size : sizes) {
      const int64_t width = kHeads * (shape.key_width + shape.value_width);
      rows_.push_back(RandomValues(std::max<int64_t>(1, size.keys) * width, ++seed, 2.0f));
      const MatrixView<const float> all = ViewOf(std::as_const(rows_.back()), size.keys, width);
      cross_kvs.push_back({all.Columns(0, kHeads * shape.key_width),
                           all.Columns(kHeads * shape.key_width, kHeads * shape.value_width)});
      sequences.push_back({.row_begin = tokens_, .length = size.queries});
      sequences.back().cross_kv = &cross_kvs.back();
      tokens_ += size.queries;
    }
    queries = RandomValues(tokens_ * kHeads * shape.key_width, seed + 100, 2.0f);
  }

  std::vector<float> Run(int team_size, int64_t* fully_masked = nullptr) const {
    std::vector<float> context(tokens_ * context_width(), -1.0f);
    AttentionWorkspace workspace(team_size, shape_, 2000);
    const int64_t count =
        Attention(ThreadTeam(team_size), shape_, {QueryView(), {}, {}, nullptr}, sequences,
                  ViewOf(context, tokens_, context_width()), workspace);
    if (fully_masked != nullptr) *fully_masked = count;
    return context;
  }

  reference::SequenceResult Expected(size_t i) const {
    const AttentionSequence& sequence = sequences[i];
    return reference::Attend(shape_, Matrix(QueryView().Rows(sequence.row_begin, sequence.length)),
                             Matrix(cross_kvs[i].keys), Matrix(cross_kvs[i].values), sequence);
  }

  void ExpectMatchesReference() const {
    const double tolerance = shape_.mode.type == ComputeType::kF32 ? 2e-6 : 8e-3;
    std::vector<float> context = Run(2);
    for (size_t i = 0; i < sequences.size(); ++i) {
      const MatrixView<float> part = ViewOf(context, tokens_, context_width())
                                         .Rows(sequences[i].row_begin, sequences[i].length);
      EXPECT_LT(reference::MaxDifference(Expected(i).context, part), tolerance) << "sequence " << i;
    }
  }

  MatrixView<const float> QueryView() const {
    return ViewOf(queries, tokens_, kHeads * shape_.key_width);
  }
  int64_t context_width() const { return kHeads * shape_.value_width; }

  std::vector<float> queries;
  std::vector<CrossKv> cross_kvs;
  std::vector<AttentionSequence> sequences;

 private:
  AttentionShape shape_;
  int64_t tokens_ = 0;
  std::vector<std::vector<float>> rows_;
};

class AttentionCrossKvTest : public testing::TestWithParam<ComputeMode> {
 protected:
  AttentionShape Shape(int64_t key_width, int64_t value_width) const {
    return {{.heads = kHeads,
             .key_width = key_width,
             .value_width = value_width,
             .score_scale = 1.0f / std::sqrt(static_cast<float>(key_width))},
            /*relative_rows=*/0,
            GetParam()};
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, AttentionCrossKvTest,
                         testing::ValuesIn(ModesOfThisCpu({ComputeType::kF32, ComputeType::kBf16})),
                         [](const auto& test) { return NameOf(test.param); });

TEST_P(AttentionCrossKvTest, MatchesFloat64AtAnyLengths) {
  for (const auto& [key_width, value_width] : {std::pair<int64_t, int64_t>{16, 16}, {26, 9}}) {
    Batch batch(Shape(key_width, value_width),
                {{4, 5}, {1, 1}, {1, 700}, {130, 2}, {600, 33}, {33, 1100}, {7, 512}, {7, 513}});
    batch.ExpectMatchesReference();
  }
}

TEST_P(AttentionCrossKvTest, NoKeysGiveZeros) {
  Batch batch(Shape(8, 8), {{3, 0}, {5, 7}});
  const std::vector<float> values = RandomValues(15, 3);
  const AttentionBias bias{values.data(), 0, 1, 1};
  batch.sequences[0].bias = &bias;
  int64_t fully_masked = 0;
  const std::vector<float> context = batch.Run(2, &fully_masked);
  EXPECT_EQ(fully_masked, 3 * kHeads);
  for (int64_t i = 0; i < 3 * batch.context_width(); ++i) EXPECT_EQ(context[i], 0.0f);
  batch.ExpectMatchesReference();
}

TEST_P(AttentionCrossKvTest, ProbabilitiesMatchFloat64AndChangeNothing) {
  constexpr int64_t kQueries = 19, kKeys = 530;
  Batch batch(Shape(12, 20), {{kQueries, kKeys}});
  const std::vector<float> context = batch.Run(2);
  std::vector<float> probabilities(kHeads * kQueries * kKeys);
  batch.sequences[0].probabilities = probabilities.data();
  EXPECT_EQ(batch.Run(2), context);
  const reference::SequenceResult expected = batch.Expected(0);
  for (int64_t h = 0; h < kHeads; ++h) {
    const MatrixView<const float> head{&probabilities[h * kQueries * kKeys], kQueries, kKeys,
                                       kKeys};
    EXPECT_LT(reference::MaxDifference(expected.probabilities[h], head), 1e-6);
  }
}

TEST_P(AttentionCrossKvTest, MatchesFloat64WithABiasAtPositionsOfEither) {
  constexpr int64_t kQueryRow = 40, kKeyRow = 60;
  std::vector<float> values = RandomValues(kHeads * kQueryRow * kKeyRow, 9, 3.0f);
  for (size_t i = 0; i < values.size(); i += 3) values[i] = -kInfinity;
  const AttentionBias bias{values.data(), kQueryRow * kKeyRow, kKeyRow, 1};
  std::vector<int32_t> query_positions, key_positions;
  for (int32_t i = 1; i < kQueryRow; i += 2) query_positions.push_back(i);
  for (int32_t i = 2; i < kKeyRow; i += 3) key_positions.push_back(i);
  const int64_t queries = static_cast<int64_t>(query_positions.size());
  const int64_t keys = static_cast<int64_t>(key_positions.size());
  Batch batch(Shape(8, 8), {{kQueryRow, keys}, {queries, kKeyRow}, {queries, keys}});
  for (AttentionSequence& sequence : batch.sequences) sequence.bias = &bias;
  batch.cross_kvs[0].positions = batch.cross_kvs[2].positions = key_positions;
  batch.sequences[1].positions = batch.sequences[2].positions = query_positions;
  batch.ExpectMatchesReference();
}

TEST_P(AttentionCrossKvTest, OwnRowsEqualSelfAttention) {
  constexpr int64_t kLength = 700;
  const AttentionShape shape = Shape(26, 26);
  Batch batch(shape, {{kLength, kLength}});
  const std::vector<float> crossed = batch.Run(2);
  const CrossKv own = batch.cross_kvs[0];
  batch.sequences[0].cross_kv = nullptr;
  std::vector<float> context(crossed.size());
  AttentionWorkspace workspace(2, shape, kLength);
  Attention(ThreadTeam(2), shape, {batch.QueryView(), own.keys, own.values, nullptr},
            batch.sequences, ViewOf(context, kLength, batch.context_width()), workspace);
  EXPECT_EQ(context, crossed);
}

TEST_P(AttentionCrossKvTest, InvarianceToTeamNeighboursAndSharing) {
  const AttentionShape shape = Shape(26, 26);
  Batch batch(shape, {{5, 1030}, {300, 7}, {17, 17}, {64, 130}});
  for (AttentionSequence& sequence : batch.sequences) sequence.cross_kv = &batch.cross_kvs[0];
  const std::vector<float> all = batch.Run(1);
  for (const int team : {2, 3}) EXPECT_EQ(batch.Run(team), all);
  for (const AttentionSequence& sequence : batch.sequences) {
    Batch alone(shape, {{sequence.length, 1}});
    alone.sequences[0].cross_kv = &batch.cross_kvs[0];
    const int64_t first = sequence.row_begin * kHeads * shape.key_width;
    std::copy_n(&batch.queries[first], alone.queries.size(), alone.queries.begin());
    const std::vector<float> context = alone.Run(2);
    EXPECT_EQ(std::memcmp(context.data(), &all[sequence.row_begin * batch.context_width()],
                          context.size() * sizeof(float)),
              0)
        << sequence.length;
  }
}

}  // namespace attention_cross_kv_test
}  // namespace attendant
