// Tests of Encode over a socket: spans, token ids and positions, intermediate layers and pooled
// vectors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/server/support/encode_calls.h"
#include "tests/server/support/test_server.h"
#include "tests/server/support/wire_tensors.h"
#include "tests/support/memory_weights.h"

namespace attendant::server {
namespace encode_test {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr int64_t kE = 32;

class EncodeTest : public ::testing::Test {
 protected:
  v1::EncodeResponse Call(const v1::EncodeRequest& request) { return EncodeOk(server_, request); }

  static v1::EncodeRequest Hidden(std::vector<int64_t> shape, const std::vector<float>& values) {
    v1::EncodeRequest request;
    request.set_model("tiny");
    *request.mutable_hidden_states() = FloatTensor(std::move(shape), values);
    return request;
  }

  static v1::EncodeRequest Ids(const std::string& model, std::vector<int64_t> shape,
                               const std::vector<int64_t>& ids) {
    v1::EncodeRequest request;
    request.set_model(model);
    *request.mutable_token_ids() = IntegerTensor(std::move(shape), ids, v1::INT32);
    return request;
  }

  TestServer server_;
};

std::vector<int64_t> SomeIds(int64_t count) {
  std::vector<int64_t> ids(count);
  for (int64_t i = 0; i < count; ++i) ids[i] = (i * 37 + 11) % 100;
  return ids;
}

// "tiny" has 64 positions. Tokens that are cut become padding: they come back as zeros, and the
// others as if they had come alone.
TEST_F(EncodeTest, TruncatesLongSequences) {
  const std::vector<int64_t> ids = SomeIds(70);
  v1::EncodeRequest request = Ids("tiny", {1, 70}, ids);
  request.set_truncation(v1::TRUNCATE_RIGHT);
  const v1::EncodeResponse right = Call(request);
  EXPECT_EQ(right.execution().tokens(), 64);
  EXPECT_EQ(right.execution().truncated_tokens(), 6);
  const std::vector<float> first = ToFloats(right.hidden_states());
  EXPECT_EQ(Rows(first, kE, 0, 64),
            ToFloats(Call(Ids("tiny", {1, 64}, {ids.begin(), ids.begin() + 64})).hidden_states()));
  EXPECT_THAT(Rows(first, kE, 64, 6), Each(0.0f));

  request.set_truncation(v1::TRUNCATE_LEFT);
  const std::vector<float> last = ToFloats(Call(request).hidden_states());
  EXPECT_EQ(Rows(last, kE, 6, 64),
            ToFloats(Call(Ids("tiny", {1, 64}, {ids.begin() + 6, ids.end()})).hidden_states()));
  EXPECT_THAT(Rows(last, kE, 0, 6), Each(0.0f));
}

// The positions of "counting" count tokens other than padding, up to 62; sequences that fit are not
// cut.
TEST_F(EncodeTest, TruncatesInThePackedLayout) {
  const std::vector<int64_t> ids = SomeIds(68);
  v1::EncodeRequest request = Ids("counting", {68}, ids);
  request.add_lengths(63);
  request.add_lengths(5);
  request.set_truncation(v1::TRUNCATE_LEFT);
  const v1::EncodeResponse response = Call(request);
  EXPECT_EQ(response.execution().truncated_tokens(), 1);
  const std::vector<float> rows = ToFloats(response.hidden_states());
  EXPECT_THAT(Rows(rows, kE, 0, 1), Each(0.0f));
  EXPECT_EQ(
      Rows(rows, kE, 1, 62),
      ToFloats(
          Call(Ids("counting", {1, 62}, {ids.begin() + 1, ids.begin() + 63})).hidden_states()));
  EXPECT_EQ(Rows(rows, kE, 63, 5),
            ToFloats(Call(Ids("counting", {1, 5}, {ids.begin() + 63, ids.end()})).hidden_states()));
}

TEST_F(EncodeTest, TruncationLeavesWhatFitsAlone) {
  v1::EncodeRequest request = Ids("tiny", {1, 5}, SomeIds(5));
  const std::vector<float> whole = ToFloats(Call(request).hidden_states());
  request.set_truncation(v1::TRUNCATE_RIGHT);
  const v1::EncodeResponse response = Call(request);
  EXPECT_EQ(response.execution().truncated_tokens(), 0);
  EXPECT_EQ(ToFloats(response.hidden_states()), whole);
}

// Returns the rows that the model "patches" makes of three features.
std::vector<float> WithFront(const std::vector<float>& features) {
  const ServedModel& served = *TestModels().at("patches");
  test_support::MemoryWeights weights =
      test_support::RandomWeights(served.encoder->description(), 8);
  const std::vector<float>& positions = weights.tensors()["front.positions"];
  std::vector<float> rows = weights.tensors()["front.class"];
  for (int64_t j = 0; j < kE; ++j) rows[j] += positions[j];
  const std::vector<float>& registers = weights.tensors()["front.registers"];
  rows.insert(rows.end(), registers.begin(), registers.end());
  for (size_t j = 0; j < features.size(); ++j) rows.push_back(features[j] + positions[kE + j]);
  return rows;
}

TEST_F(EncodeTest, FeaturesGetTheRowsAndPositionsOfTheModel) {
  const std::vector<float> values = SomeValues(2 * 3 * kE, 1);
  v1::EncodeRequest features;
  features.set_model("patches");
  *features.mutable_features() = FloatTensor({2, 3, kE}, values);
  std::vector<float> rows = WithFront({values.begin(), values.begin() + 3 * kE});
  const std::vector<float> second = WithFront({values.begin() + 3 * kE, values.end()});
  rows.insert(rows.end(), second.begin(), second.end());
  v1::EncodeRequest hidden = Hidden({2, 6, kE}, rows);
  hidden.set_model("patches");
  const v1::EncodeResponse answer = Call(features);
  EXPECT_THAT(answer.hidden_states().shape(), ElementsAre(2, 6, kE));
  EXPECT_EQ(answer.hidden_states().data(), Call(hidden).hidden_states().data());

  // Packed, and with features that are masked out.
  v1::EncodeRequest packed = features;
  *packed.mutable_features() = FloatTensor({6, kE}, values);
  packed.add_lengths(3);
  packed.add_lengths(3);
  EXPECT_EQ(Call(packed).hidden_states().data(), answer.hidden_states().data());
  *features.mutable_attention_mask() = IntegerTensor({2, 3}, {1, 0, 1, 0, 0, 0});
  *hidden.mutable_attention_mask() = IntegerTensor({2, 6}, {1, 1, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(Call(features).hidden_states().data(), Call(hidden).hidden_states().data());
}

TEST_F(EncodeTest, ABiasAddsToRelativePositionsAndWindows) {
  v1::EncodeRequest request = Hidden({1, 6, kE}, SomeValues(6 * kE, 1));
  request.set_model("patches");
  constexpr float kForbidden = -std::numeric_limits<float>::infinity();
  v1::EncodeRequest masked = request;
  *masked.mutable_attention_mask() = IntegerTensor({1, 6}, {1, 1, 0, 1, 1, 1});
  *request.mutable_attention_bias() = FloatTensor({1, 1, 1, 6}, {0, 0, kForbidden, 0, 0, 0});
  const std::vector<float> expected = ToFloats(Call(masked).hidden_states());
  const std::vector<float> values = ToFloats(Call(request).hidden_states());
  for (int64_t i = 0; i < 6 * kE; ++i) {
    if (i / kE == 2) continue;  // the masked row
    EXPECT_NEAR(values[i], expected[i], 1e-5) << i;
  }
}

TEST_F(EncodeTest, SpansChain) {
  const std::vector<float> values = SomeValues(6 * kE, 1);
  v1::EncodeRequest whole = Hidden({2, 3, kE}, values);
  whole.add_intermediate_layers(1);
  whole.add_intermediate_layers(0);
  const v1::EncodeResponse all = Call(whole);
  ASSERT_EQ(all.intermediate_size(), 2);
  EXPECT_EQ(all.intermediate(0).layer(), 1);
  EXPECT_EQ(all.intermediate(1).layer(), 0);
  // The model has no norm after its last layer.
  EXPECT_EQ(all.intermediate(0).tensor().data(), all.hidden_states().data());

  v1::EncodeRequest first = Hidden({2, 3, kE}, values);
  first.mutable_layers()->set_count(1);
  const v1::EncodeResponse half = Call(first);
  EXPECT_EQ(half.hidden_states().data(), all.intermediate(1).tensor().data());

  v1::EncodeRequest second = Hidden({2, 3, kE}, ToFloats(half.hidden_states()));
  second.mutable_layers()->set_first(1);
  second.mutable_layers()->set_count(1);
  EXPECT_EQ(Call(second).hidden_states().data(), all.hidden_states().data());
}

TEST_F(EncodeTest, PaddedIdsEqualEachSequenceAlone) {
  v1::EncodeRequest request = Ids("tiny", {3, 4}, {11, 12, 13, -1, -1, -1, 21, 22, 31, -1, 32, 33});
  *request.mutable_attention_mask() =
      IntegerTensor({3, 4}, {1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 1, 1}, v1::BOOL);
  const v1::EncodeResponse response = Call(request);
  EXPECT_EQ(response.hidden_states().dtype(), v1::FLOAT32);
  const std::vector<float> output = ToFloats(response.hidden_states());

  const auto alone = [&](const std::vector<int64_t>& ids) {
    const int64_t length = static_cast<int64_t>(ids.size());
    return ToFloats(Call(Ids("tiny", {1, length}, ids)).hidden_states());
  };
  EXPECT_EQ(Rows(output, kE, 0, 3), alone({11, 12, 13}));
  EXPECT_THAT(Rows(output, kE, 3, 3), Each(0.0f));
  // Padding on the left has no effect.
  EXPECT_EQ(Rows(output, kE, 6, 2), alone({21, 22}));
  // A hole leaves a gap in the positions.
  v1::EncodeRequest gap = Ids("tiny", {1, 3}, {31, 32, 33});
  *gap.mutable_position_ids() = IntegerTensor({1, 3}, {0, 2, 3}, v1::UINT8);
  const std::vector<float> with_gap = ToFloats(Call(gap).hidden_states());
  EXPECT_EQ(Rows(output, kE, 8, 1), Rows(with_gap, kE, 0, 1));
  EXPECT_EQ(Rows(output, kE, 10, 2), Rows(with_gap, kE, 1, 2));
}

// As the library's create_position_ids_from_input_ids: cumsum(ids != 1) * (ids != 1) + 1, which
// gives 2 3 1 4 1 for the first sequence and 1 2 3 1 4 for the second one.
TEST_F(EncodeTest, PositionsThatCountTokensLookAtTheirIdsAndNotAtTheMask) {
  const std::vector<int64_t> ids = {5, 6, 1, 7, 1, 1, 8, 9, 1, 4},
                             mask = {1, 0, 1, 1, 0, 0, 0, 1, 1, 1};
  v1::EncodeRequest request = Ids("counting", {2, 5}, ids);
  *request.mutable_attention_mask() = IntegerTensor({2, 5}, mask);
  v1::EncodeRequest given = request;
  *given.mutable_position_ids() = IntegerTensor({2, 5}, {2, 3, 1, 4, 1, 1, 2, 3, 1, 4});
  const std::string wanted = Call(given).hidden_states().data();
  EXPECT_EQ(Call(request).hidden_states().data(), wanted);
  *given.mutable_position_ids() = IntegerTensor({2, 5}, {2, 1, 3, 4, 1, 1, 1, 2, 3, 4});
  EXPECT_NE(Call(given).hidden_states().data(), wanted);  // not those of kept tokens

  request.set_layout(v1::SEQUENCE_FIRST);
  *request.mutable_token_ids() = IntegerTensor({5, 2}, {5, 1, 6, 8, 1, 9, 7, 1, 1, 4});
  const std::vector<float> sequence_first = ToFloats(Call(request).hidden_states());
  request.clear_layout();
  *request.mutable_token_ids() = IntegerTensor({2, 5}, ids);
  const std::vector<float> rows = ToFloats(Call(request).hidden_states());
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t s = 0; s < 5; ++s) {
      EXPECT_EQ(Rows(sequence_first, kE, s * 2 + b, 1), Rows(rows, kE, b * 5 + s, 1));
    }
  }
}

// The cut ones are not in the row that the library would get.
TEST_F(EncodeTest, PositionsDoNotCountWhatWasCutBeforeASequence) {
  const std::vector<int64_t> ids(70, 5);
  v1::EncodeRequest cut = Ids("counting", {1, 70}, ids);
  cut.set_truncation(v1::TRUNCATE_LEFT);
  const std::vector<float> output = ToFloats(Call(cut).hidden_states());
  EXPECT_EQ(Rows(output, kE, 8, 62),
            ToFloats(Call(Ids("counting", {1, 62}, {ids.begin() + 8, ids.end()})).hidden_states()));
}

TEST_F(EncodeTest, TokenTypesDefaultToZero) {
  const v1::EncodeRequest plain = Ids("tiny", {1, 3}, {1, 2, 3});
  v1::EncodeRequest typed = plain;
  *typed.mutable_token_type_ids() = IntegerTensor({1, 3}, {0, 0, 0}, v1::INT8);
  EXPECT_EQ(Call(plain).hidden_states().data(), Call(typed).hidden_states().data());
  *typed.mutable_token_type_ids() = IntegerTensor({1, 3}, {0, 1, 1}, v1::INT8);
  EXPECT_NE(Call(plain).hidden_states().data(), Call(typed).hidden_states().data());
}

TEST_F(EncodeTest, PackedIdsEqualPaddedOnes) {
  v1::EncodeRequest packed = Ids("tiny", {5}, {1, 2, 3, 4, 5});
  packed.add_lengths(2);
  packed.add_lengths(3);
  v1::EncodeRequest padded = Ids("tiny", {2, 3}, {1, 2, 0, 3, 4, 5});
  padded.add_lengths(2);
  padded.add_lengths(3);
  const v1::EncodeResponse response = Call(packed);
  EXPECT_THAT(ShapeOf(response.hidden_states()), ElementsAre(5, kE));
  const std::vector<float> output = ToFloats(response.hidden_states());
  const std::vector<float> wanted = ToFloats(Call(padded).hidden_states());
  EXPECT_EQ(Rows(output, kE, 0, 2), Rows(wanted, kE, 0, 2));
  EXPECT_EQ(Rows(output, kE, 2, 3), Rows(wanted, kE, 3, 3));
}

TEST_F(EncodeTest, AnswersTheAttentionOfLayersInOrder) {
  v1::EncodeRequest request = Hidden({1, 3, kE}, SomeValues(3 * kE, 2));
  request.add_attention_layers(1);
  request.add_attention_layers(0);
  request.set_omit_hidden_states(true);
  const v1::EncodeResponse response = Call(request);
  EXPECT_FALSE(response.has_hidden_states());
  ASSERT_EQ(response.attention_probabilities_size(), 2);
  EXPECT_EQ(response.attention_probabilities(0).layer(), 1);
  EXPECT_EQ(response.attention_probabilities(1).layer(), 0);
  for (const v1::LayerTensor& each : response.attention_probabilities()) {
    EXPECT_THAT(ShapeOf(each.tensor()), ElementsAre(1, 4, 3, 3));
    const std::vector<float> rows = ToFloats(each.tensor());
    for (int64_t i = 0; i < 12; ++i) {
      EXPECT_NEAR(rows[i * 3] + rows[i * 3 + 1] + rows[i * 3 + 2], 1.0, 1e-6);
    }
  }
  v1::AttendRequest attend = AttendOf("tiny", request.hidden_states());
  attend.set_return_attention_probabilities(true);
  v1::AttendResponse attended;
  ASSERT_TRUE(server_.Attend(attend, &attended).ok());
  EXPECT_EQ(attended.attention_probabilities().data(),
            response.attention_probabilities(1).tensor().data());
}

TEST_F(EncodeTest, PoolsKeptTokens) {
  v1::EncodeRequest request = Hidden({3, 3, kE}, SomeValues(9 * kE, 3));
  *request.mutable_attention_mask() = IntegerTensor({3, 3}, {1, 1, 0, 0, 1, 1, 0, 0, 0});
  request.set_return_pooled(true);
  const auto pooled = [&](v1::Pooling pooling) {
    request.set_pooling(pooling);
    const v1::EncodeResponse response = Call(request);
    EXPECT_THAT(ShapeOf(response.pooled()), ElementsAre(3, kE));
    EXPECT_THAT(Rows(ToFloats(response.pooled()), kE, 2, 1), Each(0.0f));
    return ToFloats(response.pooled());
  };
  const std::vector<float> rows = ToFloats(Call(request).hidden_states());
  EXPECT_EQ(Rows(pooled(v1::FIRST_TOKEN), kE, 1, 1), Rows(rows, kE, 4, 1));
  EXPECT_EQ(Rows(pooled(v1::LAST_TOKEN), kE, 0, 1), Rows(rows, kE, 1, 1));
  const std::vector<float> mean = pooled(v1::MEAN);
  const std::vector<float> max = pooled(v1::MAX);
  const std::vector<float> root = pooled(v1::MEAN_SQRT_LEN);
  const std::vector<float> weighted = pooled(v1::POSITION_WEIGHTED_MEAN);
  for (int64_t e = 0; e < kE; ++e) {
    // Sequence 1 keeps the positions 2 and 3, counted from 1.
    const float a = rows[4 * kE + e];
    const float b = rows[5 * kE + e];
    EXPECT_NEAR(mean[kE + e], (a + b) / 2, 1e-6);
    EXPECT_EQ(max[kE + e], std::max(a, b));
    EXPECT_NEAR(root[kE + e], (a + b) / std::sqrt(2.0f), 1e-6);
    EXPECT_NEAR(weighted[kE + e], (2 * a + 3 * b) / 5, 1e-6);
  }
}

TEST_F(EncodeTest, ComputesOnlyThePooledRowsOfTheLastLayer) {
  // Tokens 0 and 1 of three see no key. They are counted where they are computed, which is in 2
  // layers of 4 heads.
  v1::EncodeRequest request = Hidden({2, 3, kE}, SomeValues(6 * kE, 5));
  const float forbidden = -std::numeric_limits<float>::infinity();
  std::vector<float> bias(9, 0.0f);
  std::fill_n(bias.begin(), 6, forbidden);
  *request.mutable_attention_bias() = FloatTensor({1, 1, 3, 3}, bias);
  request.set_return_pooled(true);
  int total = 0;
  const auto expect_counted = [&](int rows) {
    total += rows;
    server_.ExpectMetrics(::testing::HasSubstr("attendant_keyless_rows_total{model=\"tiny\"} " +
                                               std::to_string(total) + "\n"));
  };
  for (const auto& [pooling, rows] :
       {std::pair(v1::FIRST_TOKEN, 24), {v1::LAST_TOKEN, 16}, {v1::MEAN, 32}}) {
    request.set_pooling(pooling);
    request.set_omit_hidden_states(false);
    const v1::EncodeResponse all = Call(request);
    expect_counted(32);
    request.set_omit_hidden_states(true);
    EXPECT_EQ(Call(request).pooled().data(), all.pooled().data());
    expect_counted(rows);
  }
  // A request for the last layer gets all rows of it.
  request.set_pooling(v1::FIRST_TOKEN);
  request.add_intermediate_layers(1);
  Call(request);
  expect_counted(32);
  request.clear_intermediate_layers();
  request.add_attention_layers(1);
  Call(request);
  expect_counted(32);
}

TEST_F(EncodeTest, PooledVectorsHaveLengthOneIfAskedOrDescribed) {
  v1::EncodeRequest request = Hidden({1, 3, kE}, SomeValues(3 * kE, 4));
  request.set_return_pooled(true);
  const auto length = [&] {
    double sum = 0;
    for (float value : ToFloats(Call(request).pooled())) sum += double{value} * value;
    return std::sqrt(sum);
  };
  EXPECT_NEAR(length(), 1.0, 1e-6);  // the checkpoint's own pooling normalises
  const std::vector<float> described = ToFloats(Call(request).pooled());
  request.set_pooling(v1::MEAN);
  EXPECT_GT(length(), 1.01);
  request.set_normalize_pooled(true);
  EXPECT_EQ(ToFloats(Call(request).pooled()), described);
}

TEST_F(EncodeTest, ScoresClassesByTheHeadOfTheCheckpoint) {
  v1::EncodeRequest request = Ids("counting", {2, 3}, {5, 6, 7, 8, 9, 0});
  request.add_lengths(3);
  request.add_lengths(2);
  request.set_return_pooled(true);
  request.set_pooling(v1::CLASSIFIER);
  const v1::EncodeResponse response = Call(request);
  EXPECT_THAT(response.pooled().shape(), ElementsAre(2, 3));
  test_support::MemoryWeights weights =
      test_support::RandomWeights(TestModels().at("counting")->encoder->description(), 7);
  // Computes activation(W x + b) from the formula.
  const auto apply = [&](const std::string& name, const std::vector<float>& x) {
    const std::vector<float>& weight = weights.tensors()[name + ".weight"];
    std::vector<float> y = weights.tensors()[name + ".bias"];
    for (size_t i = 0; i < y.size(); ++i) {
      for (size_t j = 0; j < x.size(); ++j) y[i] += weight[i * x.size() + j] * x[j];
    }
    return y;
  };
  const std::vector<float> rows = ToFloats(response.hidden_states());
  const std::vector<float> scores = ToFloats(response.pooled());
  for (int64_t b = 0; b < 2; ++b) {
    const float* first = rows.data() + b * 3 * kE;
    std::vector<float> inner = apply("classifier.dense", {first, first + kE});
    for (float& element : inner) element = std::tanh(element);
    const std::vector<float> expected = apply("classifier.output", inner);
    for (int64_t i = 0; i < 3; ++i) EXPECT_NEAR(scores[b * 3 + i], expected[i], 1e-5);
  }
  request.set_omit_hidden_states(true);  // lets the server compute the first tokens only
  EXPECT_EQ(Call(request).pooled().data(), response.pooled().data());
}

TEST_F(EncodeTest, EverythingMaskedIsZeros) {
  v1::EncodeRequest request = Ids("tiny", {1, 2}, {-5, 1000});
  request.add_lengths(0);
  request.add_intermediate_layers(0);
  request.add_attention_layers(1);
  request.set_return_pooled(true);
  const v1::EncodeResponse response = Call(request);
  EXPECT_THAT(ToFloats(response.hidden_states()), Each(0.0f));
  EXPECT_THAT(ToFloats(response.intermediate(0).tensor()), Each(0.0f));
  EXPECT_THAT(ToFloats(response.attention_probabilities(0).tensor()), Each(0.0f));
  EXPECT_THAT(ToFloats(response.pooled()), Each(0.0f));
}

TEST_F(EncodeTest, OneOutputTypeForAllTensors) {
  v1::EncodeRequest request = Ids("tiny", {1, 2}, {1, 2});
  request.add_intermediate_layers(0);
  request.add_attention_layers(0);
  request.set_return_pooled(true);
  request.set_output_dtype(v1::BFLOAT16);
  const v1::EncodeResponse response = Call(request);
  EXPECT_EQ(response.hidden_states().dtype(), v1::BFLOAT16);
  EXPECT_EQ(response.intermediate(0).tensor().dtype(), v1::BFLOAT16);
  EXPECT_EQ(response.attention_probabilities(0).tensor().dtype(), v1::BFLOAT16);
  EXPECT_EQ(response.pooled().dtype(), v1::BFLOAT16);
}

}  // namespace encode_test
}  // namespace attendant::server
