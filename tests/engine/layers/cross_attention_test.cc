// Tests of a layer's cross-attention, to rows that are not the queries' own.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/layers/state/workspace.h"
#include "tests/reference/reference.h"
#include "tests/support/engine_calls.h"
#include "tests/support/memory_weights.h"
#include "tests/support/random_values.h"

namespace attendant::test_support {
namespace cross_attention_test {

using reference::Matrix;

constexpr int64_t kMaxTokens = 600;

// One sequence of queries and the rows that it attends to. Without values, key_source makes them.
struct Item {
  Sequence queries;
  Sequence key_source;
  Sequence values = {};
};

std::vector<Item> RandomItems(absl::Span<const std::pair<int64_t, int64_t>> lengths,
                              const LayerShape& layer, uint32_t seed, bool has_values = false) {
  std::vector<Item> items;
  for (const auto& [queries, rows] : lengths) {
    items.push_back({RandomValues(queries * layer.hidden_size, ++seed),
                     RandomValues(rows * layer.key_inputs(), ++seed)});
    if (has_values) items.back().values = RandomValues(rows * layer.value_inputs(), ++seed);
  }
  return items;
}

void Put(const Sequence& rows, MatrixView<float> target) {
  for (int64_t r = 0; r * target.cols < static_cast<int64_t>(rows.size()); ++r) {
    std::copy_n(&rows[r * target.cols], target.cols, target.row(r));
  }
}

std::vector<Sequence> Cut(MatrixView<const float> rows, absl::Span<const int32_t> bounds) {
  std::vector<Sequence> parts(bounds.size() - 1);
  for (size_t i = 0; i < parts.size(); ++i) {
    for (int32_t r = bounds[i]; r < bounds[i + 1]; ++r) {
      parts[i].insert(parts[i].end(), rows.row(r), rows.row(r) + rows.cols);
    }
  }
  return parts;
}

// Puts the queries of the items into the input, followed by the rows that they attend to, and
// projects these. Throws on an error, as does Attend below.
std::vector<CrossKv> Prepare(EncoderRun& run, int64_t layer, const std::vector<Item>& items,
                             std::vector<int32_t>& bounds) {
  bounds = {0};
  std::vector<int64_t> first_keys = {0};
  bool has_values = false;
  for (const Item& item : items) {
    const int64_t width = run.input().cols;
    Put(item.queries, run.input().Rows(bounds.back(), run.input().rows - bounds.back()));
    bounds.push_back(bounds.back() + static_cast<int32_t>(item.queries.size() / width));
    first_keys.push_back(first_keys.back() +
                         static_cast<int64_t>(item.key_source.size()) / run.key_input().cols);
    has_values = has_values || !item.values.empty();
  }
  const int64_t first = bounds.back(), count = first_keys.back();
  const CrossKvRange rows = {first, first + (has_values ? count : 0), count};
  const auto behind = [](MatrixView<float> view, int64_t row) {
    return view.Rows(row, view.rows - row);
  };
  for (size_t i = 0; i < items.size(); ++i) {
    Put(items[i].key_source, behind(run.key_input(), rows.first_key + first_keys[i]));
    if (!has_values) continue;
    Put(items[i].values, behind(run.value_input(), rows.first_value + first_keys[i]));
  }
  const absl::StatusOr<CrossKv> all = run.ProjectCrossKv(layer, rows);
  if (!all.ok()) throw std::runtime_error(all.status().ToString());
  std::vector<CrossKv> cross_kvs;
  for (size_t i = 0; i < items.size(); ++i) {
    const int64_t own = first_keys[i + 1] - first_keys[i];
    cross_kvs.push_back({all->keys.Rows(first_keys[i], own), all->values.Rows(first_keys[i], own)});
  }
  return cross_kvs;
}

std::vector<Sequence> Attend(EncoderRun& run, AttendStage stage, const std::vector<Item>& items,
                             int64_t layer = 0) {
  std::vector<int32_t> bounds;
  const std::vector<CrossKv> cross_kvs = Prepare(run, layer, items, bounds);
  RunObserver nobody;
  const auto result =
      run.Attend(layer, stage, {.cu_seqlens = bounds, .bias = {}, .cross_kv = cross_kvs}, nobody);
  if (!result.ok()) throw std::runtime_error(result.status().ToString());
  return Cut(*result, bounds);
}

class CrossAttentionTest : public ::testing::TestWithParam<ComputeType> {
 protected:
  CrossAttentionTest() { model_.layer.feed_forward.width = 0; }

  void Load() {
    weights_ = RandomWeights(model_, 1);
    encoder_ = LoadEncoder(model_, weights_, mode_);
    run_ = std::make_unique<EncoderRun>(encoder_, kMaxTokens, 2);
  }

  // Returns x W^T + b of layer 0, rounded as the engine rounds.
  Matrix Project(const std::string& name, const Sequence& x, int64_t in) const {
    const auto& tensors = weights_tensors();
    const std::vector<float>& weight = tensors.at("layer.0." + name + ".weight");
    const int64_t out = static_cast<int64_t>(weight.size()) / in;
    return reference::Linear(
        reference::InputOperand(mode_.type, ViewOf(x, static_cast<int64_t>(x.size()) / in, in)),
        reference::WeightOperand(mode_.type, ViewOf(weight, out, in)),
        tensors.at("layer.0." + name + ".bias"));
  }

  Matrix ExpectedContext(const Item& item) const {
    const LayerShape& layer = model_.layer;
    const Sequence& values = item.values.empty() ? item.key_source : item.values;
    const std::string key = layer.attention.keys_are_queries ? "query" : "key";
    const Matrix queries = Project("query", item.queries, layer.hidden_size);
    const Matrix keys = Project(key, item.key_source, layer.key_inputs());
    CrossKv size;
    size.keys.rows = keys.rows();
    AttentionSequence sequence = {.row_begin = 0, .length = queries.rows()};
    sequence.cross_kv = &size;
    return reference::Attend(AttentionShapeOf(layer, mode_), queries, keys,
                             Project(layer.attention.values_are_keys ? key : "value", values,
                                     layer.value_inputs()),
                             sequence)
        .context;
  }

  void ExpectMatchesFloat64(const std::vector<Item>& items) {
    const std::vector<Sequence> contexts = Attend(*run_, AttendStage::kContext, items);
    const int64_t width = model_.layer.context_width();
    for (size_t i = 0; i < items.size(); ++i) {
      const Matrix expected = ExpectedContext(items[i]);
      ASSERT_EQ(static_cast<int64_t>(contexts[i].size()), expected.rows() * width);
      EXPECT_LT(reference::MaxDifference(expected, ViewOf(contexts[i], expected.rows(), width)),
                AttendsInBf16(mode_.type) ? 2e-2 : 5e-6)
          << i;
    }
  }

  const MemoryWeights::Tensors& weights_tensors() const {
    return const_cast<MemoryWeights&>(weights_).tensors();
  }

  const ComputeMode mode_ = BestMode(GetParam());
  ModelDescription model_ = SmallModel(2, 3, 16);
  MemoryWeights weights_{{}};
  std::shared_ptr<const Encoder> encoder_;
  std::unique_ptr<EncoderRun> run_;
};

INSTANTIATE_TEST_SUITE_P(Types, CrossAttentionTest, ::testing::ValuesIn(kComputeTypes),
                         [](const auto& tested) { return Name(tested.param); });

const std::vector<std::pair<int64_t, int64_t>> kLengths = {
    {4, 5}, {1, 40}, {33, 1}, {17, 64}, {0, 3}};

TEST_P(CrossAttentionTest, MatchesFloat64) {
  Load();
  ExpectMatchesFloat64(RandomItems(kLengths, model_.layer, 1));
}

TEST_P(CrossAttentionTest, ValuesMayComeFromOtherRows) {
  Load();
  ExpectMatchesFloat64(RandomItems(kLengths, model_.layer, 1, /*has_values=*/true));
}

TEST_P(CrossAttentionTest, ProjectionsMayBeShared) {
  for (const auto& [keys_are_queries, values_are_keys] :
       {std::pair{true, false}, {false, true}, {true, true}}) {
    model_.layer.attention.keys_are_queries = keys_are_queries;
    model_.layer.attention.values_are_keys = values_are_keys;
    Load();
    for (const bool has_values : {false, true}) {
      ExpectMatchesFloat64(RandomItems(kLengths, model_.layer, 1, has_values));
    }
  }
}

// Keys and values of their own widths, like torch's kdim and vdim.
TEST_P(CrossAttentionTest, KeysAndValuesMayBeMadeOfOtherWidths) {
  for (const auto& [key_inputs, value_inputs] :
       {std::pair<int64_t, int64_t>{20, 100}, {100, 48}, {48, 7}, {30, 30}}) {
    model_ = SmallModel(1, 3, 16);
    model_.layer.norms.placement = NormPlacement::kNone;
    model_.layer.feed_forward.width = 0;
    model_.layer.attention.key_input_width = key_inputs;
    model_.layer.attention.value_input_width = value_inputs;
    Load();
    ExpectMatchesFloat64(RandomItems(kLengths, model_.layer, 1, /*has_values=*/true));
    if (key_inputs == value_inputs) ExpectMatchesFloat64(RandomItems(kLengths, model_.layer, 1));
  }
}

TEST_P(CrossAttentionTest, WithoutKeysRowsAreFullyMasked) {
  Load();
  const std::vector<Item> items = RandomItems({{3, 0}, {2, 9}}, model_.layer, 1);
  const std::vector<Sequence> contexts = Attend(*run_, AttendStage::kContext, items);
  EXPECT_EQ(contexts[0], Sequence(3 * 48, 0.0f));
  EXPECT_EQ(run_->fully_masked_rows(), 3 * 3);
}

// The layer's own input is the cross_kv, in every stage. The model has no norm before the
// attention, because that would not apply to cross_kv.
TEST_P(CrossAttentionTest, OwnRowsEqualSelfAttention) {
  for (const bool has_inputs : {true, false}) {
    model_.layer.attention.has_input_projection = has_inputs;
    model_.layer.attention.keys_are_queries = model_.layer.attention.values_are_keys = !has_inputs;
    model_.layer.attention.query_key_norms =
        has_inputs ? QueryKeyNorms::kAllHeads : QueryKeyNorms::kNone;
    Load();
    std::vector<Item> items;
    std::vector<Sequence> sequences = RandomSequences({1, 40, 7, 130}, 48, 1);
    for (const Sequence& sequence : sequences) items.push_back({sequence, sequence});
    for (const AttendStage stage :
         {AttendStage::kContext, AttendStage::kProjected, AttendStage::kBlock}) {
      const std::vector<Sequence> crossed = Attend(*run_, stage, items, 1);
      FillInput(sequences, *run_);
      const std::vector<int32_t> bounds = CumulativeLengths(sequences, 48);
      RunObserver nobody;
      const auto own = run_->Attend(1, stage, {.cu_seqlens = bounds, .bias = {}}, nobody);
      ASSERT_TRUE(own.ok()) << own.status();
      EXPECT_EQ(crossed, Cut(*own, bounds));
    }
  }
}

TEST_P(CrossAttentionTest, InvarianceToTheBatchAndTheTeam) {
  model_.layer.norms.placement = NormPlacement::kPre;
  Load();
  const std::vector<Item> items =
      RandomItems({{1, 1}, {2, 65}, {16, 15}, {31, 17}, {64, 3}, {7, 90}, {3, 0}}, model_.layer, 1);
  std::vector<Sequence> alone;
  for (const Item& item : items) {
    alone.push_back(Attend(*run_, AttendStage::kBlock, {item}).front());
  }
  std::mt19937 random(5);
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  for (int batch = 0; batch < 40; ++batch) {
    std::shuffle(order.begin(), order.end(), random);
    std::vector<Item> chosen;
    for (size_t i = 0; i < 1 + batch % order.size(); ++i) chosen.push_back(items[order[i]]);
    EncoderRun run(encoder_, kMaxTokens, 1 + batch % 3);
    const std::vector<Sequence> outputs = Attend(run, AttendStage::kBlock, chosen);
    for (size_t i = 0; i < chosen.size(); ++i) {
      ASSERT_TRUE(BitEqual(outputs[i], alone[order[i]])) << "batch " << batch << ", place " << i;
    }
  }
}

// Keys and values that are kept serve batches that do not have their rows.
TEST_P(CrossAttentionTest, ProjectedRowsCanBeKept) {
  Load();
  const std::vector<Item> items = RandomItems({{9, 30}}, model_.layer, 1);
  const Sequence expected = Attend(*run_, AttendStage::kContext, items).front();
  std::vector<int32_t> bounds;
  const CrossKv projected = Prepare(*run_, 0, items, bounds).front();
  const std::vector<int32_t> key_bounds = {0, 30};
  const Sequence keys = Cut(projected.keys, key_bounds).front();
  const Sequence values = Cut(projected.values, key_bounds).front();
  EncoderRun other(encoder_, kMaxTokens, 1);
  Put(items[0].queries, other.input());
  const std::vector<CrossKv> kept = {{ViewOf(keys, 30, 48), ViewOf(values, 30, 48)}};
  RunObserver nobody;
  const auto result = other.Attend(0, AttendStage::kContext,
                                   {.cu_seqlens = bounds, .bias = {}, .cross_kv = kept}, nobody);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(Cut(*result, bounds).front(), expected);
}

class CrossKvRefusalTest : public ::testing::Test {
 protected:
  void Load(const ModelDescription& model) {
    MemoryWeights weights = RandomWeights(model, 1);
    run_ = std::make_unique<EncoderRun>(LoadEncoder(model, weights), 64, 1);
  }

  absl::Status Attend(const std::vector<CrossKv>& cross_kv) {
    const std::vector<int32_t> bounds = {0, 2};
    return run_
        ->Attend(0, AttendStage::kContext, {.cu_seqlens = bounds, .bias = {}, .cross_kv = cross_kv},
                 nobody_)
        .status();
  }

  ModelDescription model_ = SmallModel(1, 3, 16);
  std::unique_ptr<EncoderRun> run_;
  RunObserver nobody_;
};

TEST_F(CrossKvRefusalTest, RelativePositionsAndWindows) {
  model_.layer.relative_positions.kind = RelativePositions::kAlibi;
  Load(model_);
  const absl::Status expected = absl::InvalidArgumentError(
      "memory: not supported by this layer: its alibi positions relate tokens of one sequence");
  EXPECT_EQ(Attend({CrossKv()}), expected);
  EXPECT_EQ(run_->ProjectCrossKv(0, {0, 0, 1}).status(), expected);
  model_.layer.relative_positions.kind = RelativePositions::kNone;
  model_.layer.attention.window = 3;
  Load(model_);
  EXPECT_EQ(
      Attend({CrossKv()}),
      absl::InvalidArgumentError(
          "memory: not supported by this layer: its attention window of 3 surrounds the query in "
          "its own sequence"));
  model_.layer.attention.causal = true;
  Load(model_);
  EXPECT_EQ(Attend({CrossKv()}),
            absl::InvalidArgumentError("memory: not supported by this layer: its queries attend "
                                       "only to earlier tokens of their own sequence"));
}

TEST_F(CrossKvRefusalTest, RowsThatDoNotFit) {
  Load(model_);
  for (const CrossKvRange& rows :
       {CrossKvRange{0, 0, 65}, {80, 0, 1}, {0, 65, 16}, {-1, 0, 1}, {0, 0, -1}}) {
    EXPECT_EQ(run_->ProjectCrossKv(0, rows).status(),
              absl::ResourceExhaustedError(absl::StrCat(
                  "memory: expected at most 64 rows within 80; got ", rows.rows, " keys from row ",
                  rows.first_key, " and values from row ", rows.first_value)));
  }
  EXPECT_TRUE(run_->ProjectCrossKv(0, {16, 16, 64}).ok());
  EXPECT_EQ(run_->ProjectCrossKv(1, {0, 0, 1}).status(),
            absl::InvalidArgumentError("layer: expected 0..0; got 1"));
}

TEST_F(CrossKvRefusalTest, CrossKvThatIsNoBatch) {
  Load(model_);
  const std::vector<float> rows(65 * 48);
  const auto view = [&](int64_t count) { return ViewOf(rows, count, 48); };
  EXPECT_EQ(Attend({{view(2), view(2)}, {view(2), view(2)}}),
            absl::InvalidArgumentError("memory: expected 1 (one per sequence); got 2"));
  EXPECT_EQ(Attend({{view(2), view(3)}}),
            absl::InvalidArgumentError("memory: expected 2 values and 0 or 2 positions (one per "
                                       "key); got 3 values and 0 positions"));
  EXPECT_EQ(Attend({{view(65), view(65)}}),
            absl::ResourceExhaustedError("memory: expected at most 64 rows; got 65"));
  const std::vector<int32_t> bounds = {0, 2};
  const std::vector<CrossKv> cross_kv = {{view(2), view(2)}};
  const PackedBatch batch = {.cu_seqlens = bounds, .bias = {}, .cross_kv = cross_kv};
  EXPECT_EQ(
      run_->Encode(0, 1, batch, nobody_).status(),
      absl::InvalidArgumentError("memory: not supported by Encode, in which tokens attend to their "
                                 "own sequence; use Attend"));
}

TEST_F(CrossKvRefusalTest, LayersThatNeedOne) {
  model_.layer.attention.key_input_width = 20;
  Load(model_);
  const absl::Status expected = absl::InvalidArgumentError(
      "memory: required (the layer projects queries from 48 columns, keys from 20 and values from "
      "48)");
  EXPECT_EQ(Attend({}), expected);
  const std::vector<int32_t> bounds = {0, 2};
  EXPECT_EQ(run_->Encode(0, 1, {.cu_seqlens = bounds, .bias = {}}, nobody_).status(), expected);
}

TEST_F(CrossKvRefusalTest, OtherWidthsWhereTheyCannotBe) {
  model_.layer.attention.value_input_width = 20;
  const auto refused = [&] { return Encoder::PredictLoadBytes(model_).status(); };
  EXPECT_TRUE(refused().ok()) << refused();
  const absl::Status expected = absl::InvalidArgumentError(
      "model description: expected separate projections of queries, keys and values, and no "
      "relative positions, causal mask or window, in a layer that projects them from inputs of "
      "different widths; got widths 48, 48 and 20");
  model_.layer.attention.keys_are_queries = true;
  EXPECT_EQ(refused(), expected);
  model_.layer.attention.keys_are_queries = false;
  model_.layer.attention.window = 1;
  EXPECT_EQ(refused(), expected);
}

}  // namespace cross_attention_test
}  // namespace attendant::test_support
