// Tests of Attend over a socket: layouts, types, masks, bias and probabilities.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/server/support/test_server.h"
#include "tests/server/support/wire_tensors.h"

namespace attendant::server {
namespace attend_test {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;

constexpr int64_t kE = 32;
constexpr int64_t kH = 4;
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

class AttendTest : public ::testing::Test {
 protected:
  v1::AttendResponse Call(const v1::AttendRequest& request) {
    v1::AttendResponse response;
    const grpc::Status status = server_.Attend(request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  static v1::AttendRequest Request(std::vector<int64_t> shape, const std::vector<float>& values,
                                   v1::DataType dtype = v1::FLOAT32) {
    v1::AttendRequest request = AttendOf("tiny", FloatTensor(std::move(shape), values, dtype));
    request.set_layer(1);
    return request;
  }

  // Sends one sequence alone, without padding.
  std::vector<float> Alone(const std::vector<float>& rows, v1::AttendStage stage) {
    const int64_t length = static_cast<int64_t>(rows.size()) / kE;
    v1::AttendRequest request = Request({1, length, kE}, rows);
    request.set_stage(stage);
    return ToFloats(Call(request).output());
  }

  TestServer server_;
};

TEST_F(AttendTest, PaddedSequencesEqualEachAloneBitForBit) {
  // A prefix, padding on the left, holes, and no kept token.
  const std::vector<int64_t> mask = {1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0};
  std::vector<float> values = SomeValues(4 * 5 * kE, 3);
  for (int64_t row = 0; row < 20; ++row) {
    // Padding is never read.
    if (mask[row] == 0) std::fill_n(values.begin() + row * kE, kE, std::nanf(""));
  }
  for (v1::AttendStage stage : {v1::CONTEXT, v1::PROJECTED, v1::BLOCK}) {
    v1::AttendRequest request = Request({4, 5, kE}, values);
    *request.mutable_attention_mask() = IntegerTensor({4, 5}, mask, v1::UINT8);
    request.set_stage(stage);
    const v1::AttendResponse response = Call(request);
    EXPECT_THAT(ShapeOf(response.output()), ElementsAre(4, 5, kE));
    const std::vector<float> output = ToFloats(response.output());
    for (int64_t b = 0; b < 4; ++b) {
      std::vector<float> kept;
      std::vector<float> answered;
      for (int64_t row = b * 5; row < b * 5 + 5; ++row) {
        const std::vector<float> out = Rows(output, kE, row, 1);
        if (mask[row] == 0) {
          EXPECT_THAT(out, Each(0.0f));
          continue;
        }
        const std::vector<float> in = Rows(values, kE, row, 1);
        kept.insert(kept.end(), in.begin(), in.end());
        answered.insert(answered.end(), out.begin(), out.end());
      }
      if (kept.empty()) continue;
      EXPECT_EQ(answered, Alone(kept, stage));
    }
  }
}

TEST_F(AttendTest, LengthsEqualTheMaskThatTheyMean) {
  const std::vector<float> values = SomeValues(2 * 4 * kE, 4);
  v1::AttendRequest masked = Request({2, 4, kE}, values);
  *masked.mutable_attention_mask() = IntegerTensor({2, 4}, {1, 1, 1, 0, 0, 0, 0, 0}, v1::BOOL);
  v1::AttendRequest counted = Request({2, 4, kE}, values);
  counted.add_lengths(3);
  counted.add_lengths(0);
  EXPECT_EQ(Call(masked).output().data(), Call(counted).output().data());
}

TEST_F(AttendTest, PackedEqualsPadded) {
  const std::vector<float> values = SomeValues(5 * kE, 5);
  v1::AttendRequest request = Request({5, kE}, values);
  for (int64_t length : {2, 0, 3}) request.add_lengths(length);
  const v1::AttendResponse response = Call(request);
  EXPECT_THAT(ShapeOf(response.output()), ElementsAre(5, kE));
  const std::vector<float> output = ToFloats(response.output());
  EXPECT_EQ(Rows(output, kE, 0, 2), Alone(Rows(values, kE, 0, 2), v1::CONTEXT));
  EXPECT_EQ(Rows(output, kE, 2, 3), Alone(Rows(values, kE, 2, 3), v1::CONTEXT));
}

TEST_F(AttendTest, EveryWireType) {
  const std::vector<float> values = SomeValues(3 * kE, 6);
  for (v1::DataType dtype : {v1::FLOAT32, v1::FLOAT16, v1::BFLOAT16}) {
    // Inputs are widened to float32 exactly, and the answer is rounded once.
    const std::vector<float> sent = RoundedTo(dtype, values);
    const std::vector<float> exact = Alone(sent, v1::CONTEXT);
    v1::AttendRequest request = Request({1, 3, kE}, values, dtype);
    const v1::Tensor same = Call(request).output();
    EXPECT_EQ(same.dtype(), dtype);
    EXPECT_EQ(ToFloats(same), RoundedTo(dtype, exact));
    for (v1::DataType output : {v1::FLOAT32, v1::FLOAT16, v1::BFLOAT16}) {
      request.set_output_dtype(output);
      const v1::Tensor other = Call(request).output();
      EXPECT_EQ(other.dtype(), output);
      EXPECT_EQ(ToFloats(other), RoundedTo(output, exact));
    }
  }
}

TEST_F(AttendTest, ABiasThatForbidsKeysEqualsAMask) {
  const std::vector<float> values = SomeValues(2 * 4 * kE, 7);
  const std::vector<int64_t> mask = {1, 0, 1, 1, 1, 1, 1, 0};
  v1::AttendRequest masked = Request({2, 4, kE}, values);
  *masked.mutable_attention_mask() = IntegerTensor({2, 4}, mask);
  std::vector<float> bias;
  for (int64_t keep : mask) bias.push_back(keep ? 0.0f : kMinusInfinity);
  v1::AttendRequest biased = Request({2, 4, kE}, values);
  *biased.mutable_attention_bias() = FloatTensor({2, 1, 1, 4}, bias, v1::FLOAT16);
  const std::vector<float> by_mask = ToFloats(Call(masked).output());
  const std::vector<float> by_bias = ToFloats(Call(biased).output());
  for (int64_t row = 0; row < 8; ++row) {
    if (mask[row] == 0) continue;
    for (int64_t e = 0; e < kE; ++e) {
      EXPECT_NEAR(by_mask[row * kE + e], by_bias[row * kE + e], 1e-6);
    }
  }
}

TEST_F(AttendTest, ABiasIsAddressedByPaddedPositions) {
  // The row has a hole, and the bias of the pair (0, 2) must reach the second kept key.
  const std::vector<float> values = SomeValues(3 * kE, 8);
  std::vector<float> bias(kH * 9, 0.0f);
  for (int64_t h = 0; h < kH; ++h) bias[h * 9 + 2] = kMinusInfinity;
  v1::AttendRequest request = Request({1, 3, kE}, values);
  *request.mutable_attention_mask() = IntegerTensor({1, 3}, {1, 0, 1});
  *request.mutable_attention_bias() = FloatTensor({1, kH, 3, 3}, bias);
  request.set_return_attention_probabilities(true);
  const v1::AttendResponse response = Call(request);
  const std::vector<float> probabilities = ToFloats(response.attention_probabilities());
  for (int64_t h = 0; h < kH; ++h) {
    EXPECT_EQ(Rows(probabilities, 3, h * 3, 1), (std::vector<float>{1, 0, 0}));
    EXPECT_GT(probabilities[h * 9 + 6], 0.0f);
    EXPECT_GT(probabilities[h * 9 + 8], 0.0f);
  }
}

TEST_F(AttendTest, AQueryWithoutKeysGetsZerosAndIsCounted) {
  v1::AttendRequest request = Request({1, 2, kE}, SomeValues(2 * kE, 9));
  *request.mutable_attention_bias() =
      FloatTensor({1, 1, 2, 2}, {0, 0, kMinusInfinity, kMinusInfinity});
  const std::vector<float> output = ToFloats(Call(request).output());
  EXPECT_THAT(Rows(output, kE, 1, 1), Each(0.0f));
  server_.ExpectMetrics(::testing::HasSubstr("attendant_keyless_rows_total{model=\"tiny\"} 4"));
}

TEST_F(AttendTest, ProbabilitiesAreZeroAtPaddingAndSumToOne) {
  v1::AttendRequest request = Request({2, 3, kE}, SomeValues(6 * kE, 10));
  *request.mutable_attention_mask() = IntegerTensor({2, 3}, {0, 1, 1, 0, 0, 0});
  request.set_return_attention_probabilities(true);
  const v1::AttendResponse response = Call(request);
  EXPECT_THAT(ShapeOf(response.attention_probabilities()), ElementsAre(2, kH, 3, 3));
  const std::vector<float> all = ToFloats(response.attention_probabilities());
  for (int64_t row = 0; row < 2 * kH * 3; ++row) {
    const bool kept = row < kH * 3 && row % 3 != 0;
    EXPECT_EQ(all[row * 3], 0.0f);
    EXPECT_EQ(all[row * 3 + 1] > 0.0f, kept);
    EXPECT_NEAR(all[row * 3 + 1] + all[row * 3 + 2], kept ? 1.0 : 0.0, 1e-6);
  }
}

TEST_F(AttendTest, PackedProbabilitiesHaveTheLongestLength) {
  const std::vector<float> values = SomeValues(3 * kE, 11);
  v1::AttendRequest request = Request({3, kE}, values);
  request.add_lengths(1);
  request.add_lengths(2);
  request.set_return_attention_probabilities(true);
  const v1::AttendResponse response = Call(request);
  EXPECT_THAT(ShapeOf(response.attention_probabilities()), ElementsAre(2, kH, 2, 2));
  const std::vector<float> all = ToFloats(response.attention_probabilities());
  EXPECT_EQ(Rows(all, 4, 0, 1), (std::vector<float>{1, 0, 0, 0}));
}

TEST_F(AttendTest, EverythingMaskedIsZeros) {
  v1::AttendRequest request = Request({2, 3, kE}, SomeValues(6 * kE, 12));
  *request.mutable_attention_mask() = IntegerTensor({2, 3}, std::vector<int64_t>(6, 0));
  request.set_return_attention_probabilities(true);
  const v1::AttendResponse response = Call(request);
  EXPECT_THAT(ToFloats(response.output()), Each(0.0f));
  EXPECT_THAT(ToFloats(response.attention_probabilities()), Each(0.0f));
  EXPECT_EQ(response.execution().tokens(), 0);
}

TEST_F(AttendTest, AModelWithoutOutputProjectionAnswersItsContext) {
  v1::AttendRequest request =
      AttendOf("bare", FloatTensor({1, 3, 4}, {1, 0, 1, 0, 0, 2, 0, 2, 1, 1, 1, 1}));
  const v1::AttendResponse response = Call(request);
  EXPECT_THAT(ShapeOf(response.output()), ElementsAre(1, 3, 3));
  EXPECT_THAT(Rows(ToFloats(response.output()), 3, 0, 1),
              ElementsAre(FloatNear(1.936621f, 2e-6f), FloatNear(6.683105f, 2e-6f),
                          FloatNear(1.595068f, 2e-6f)));
  request.set_stage(v1::BLOCK);
  EXPECT_EQ(Call(request).output().data(), response.output().data());
}

TEST_F(AttendTest, TellsHowItRan) {
  v1::AttendRequest request = Request({2, 3, kE}, SomeValues(6 * kE, 13));
  request.add_lengths(1);
  request.add_lengths(3);
  const v1::Execution execution = Call(request).execution();
  EXPECT_EQ(execution.tokens(), 4);
  EXPECT_EQ(execution.batch_tokens(), 4);
  EXPECT_EQ(execution.batch_requests(), 1);
  EXPECT_EQ(execution.compute_dtype(), v1::FLOAT32);
  EXPECT_EQ(execution.compute_type(), "f32");
  EXPECT_GE(execution.queue_ns(), 0);
  EXPECT_GT(execution.copy_ns(), 0);
  EXPECT_GT(execution.compute_ns(), 0);
  server_.ExpectMetrics(::testing::HasSubstr("attendant_tokens_total{model=\"tiny\"} 4"));
  server_.ExpectMetrics(
      ::testing::HasSubstr("attendant_padding_tokens_avoided_total{model=\"tiny\"} 2"));
}

}  // namespace attend_test
}  // namespace attendant::server
