// Tests of cross-attention over a socket: layouts, masks, bias and probabilities of a memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/server/support/pending_attend.h"
#include "tests/server/support/test_server.h"
#include "tests/server/support/wire_tensors.h"

namespace attendant::server {
namespace cross_attention_test {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr int64_t kE = 32;
constexpr int64_t kH = 4;
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

class CrossAttentionTest : public ::testing::Test {
 protected:
  v1::AttendResponse Call(const v1::AttendRequest& request) {
    v1::AttendResponse response;
    const grpc::Status status = server_.Attend(request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  static v1::AttendRequest Request(std::vector<int64_t> shape, const std::vector<float>& values) {
    v1::AttendRequest request = AttendOf("tiny", FloatTensor(std::move(shape), values));
    request.set_layer(1);
    request.set_stage(v1::PROJECTED);
    return request;
  }

  static void SetMemory(std::vector<int64_t> shape, const std::vector<float>& values,
                        v1::AttendRequest& request) {
    *request.mutable_memory()->mutable_hidden_states() = FloatTensor(std::move(shape), values);
  }

  // Sends one sequence and its memory alone, without padding.
  std::vector<float> Alone(const std::vector<float>& rows, const std::vector<float>& memory) {
    v1::AttendRequest request = Request({1, static_cast<int64_t>(rows.size()) / kE, kE}, rows);
    SetMemory({1, static_cast<int64_t>(memory.size()) / kE, kE}, memory, request);
    return ToFloats(Call(request).output());
  }

  TestServer server_;
};

TEST_F(CrossAttentionTest, OwnRowsAsMemoryEqualSelfAttentionBitForBit) {
  const std::vector<float> values = SomeValues(2 * 7 * kE, 1);
  for (const v1::AttendStage stage : {v1::CONTEXT, v1::PROJECTED, v1::BLOCK}) {
    v1::AttendRequest request = Request({2, 7, kE}, values);
    request.set_stage(stage);
    const std::string own = Call(request).output().data();
    SetMemory({2, 7, kE}, values, request);
    EXPECT_EQ(Call(request).output().data(), own);
    *request.mutable_memory()->mutable_values() = request.hidden_states();
    EXPECT_EQ(Call(request).output().data(), own);
  }
}

TEST_F(CrossAttentionTest, PaddingOfEitherIsNeverLookedAt) {
  const std::vector<int64_t> mask = {1, 1, 0, 0, 1, 1, 0, 0, 0};
  const std::vector<int64_t> memory_mask = {0, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0};
  std::vector<float> rows = SomeValues(9 * kE, 2), memory = SomeValues(15 * kE, 3);
  const auto spoil_padding = [](const std::vector<int64_t>& kept, std::vector<float>& values) {
    for (size_t i = 0; i < kept.size(); ++i) {
      if (kept[i] == 0) std::fill_n(values.begin() + i * kE, kE, std::nanf(""));
    }
  };
  spoil_padding(mask, rows);
  spoil_padding(memory_mask, memory);
  v1::AttendRequest request = Request({3, 3, kE}, rows);
  *request.mutable_attention_mask() = IntegerTensor({3, 3}, mask);
  SetMemory({3, 5, kE}, memory, request);
  *request.mutable_memory()->mutable_attention_mask() = IntegerTensor({3, 5}, memory_mask);
  const std::vector<float> output = ToFloats(Call(request).output());
  std::vector<float> first = Rows(memory, kE, 1, 1);
  const std::vector<float> behind = Rows(memory, kE, 3, 2);
  first.insert(first.end(), behind.begin(), behind.end());
  EXPECT_EQ(Rows(output, kE, 0, 2), Alone(Rows(rows, kE, 0, 2), first));
  EXPECT_EQ(Rows(output, kE, 4, 2), Alone(Rows(rows, kE, 4, 2), Rows(memory, kE, 5, 5)));
  for (const int64_t padding : {2, 3, 6, 7, 8}) {
    EXPECT_THAT(Rows(output, kE, padding, 1), Each(0.0f));
  }
}

TEST_F(CrossAttentionTest, EitherMayBePackedAndLengthsMayBeZero) {
  const std::vector<float> rows = SomeValues(5 * kE, 4), memory = SomeValues(9 * kE, 5);
  v1::AttendRequest request = Request({5, kE}, rows);
  for (const int64_t length : {2, 0, 3}) request.add_lengths(length);
  SetMemory({9, kE}, memory, request);
  for (const int64_t length : {4, 2, 3}) request.mutable_memory()->add_lengths(length);
  std::vector<float> output = ToFloats(Call(request).output());
  EXPECT_EQ(Rows(output, kE, 0, 2), Alone(Rows(rows, kE, 0, 2), Rows(memory, kE, 0, 4)));
  EXPECT_EQ(Rows(output, kE, 2, 3), Alone(Rows(rows, kE, 2, 3), Rows(memory, kE, 6, 3)));
  // A padded memory for packed queries.
  SetMemory({3, 3, kE}, memory, request);
  request.mutable_memory()->clear_lengths();
  for (const int64_t length : {1, 3, 2}) request.mutable_memory()->add_lengths(length);
  output = ToFloats(Call(request).output());
  EXPECT_EQ(Rows(output, kE, 0, 2), Alone(Rows(rows, kE, 0, 2), Rows(memory, kE, 0, 1)));
  EXPECT_EQ(Rows(output, kE, 2, 3), Alone(Rows(rows, kE, 2, 3), Rows(memory, kE, 6, 2)));
}

TEST_F(CrossAttentionTest, OneMemoryServesAllSequences) {
  const std::vector<float> rows = SomeValues(6 * kE, 6), memory = SomeValues(4 * kE, 7);
  v1::AttendRequest request = Request({3, 2, kE}, rows);
  SetMemory({1, 4, kE}, memory, request);
  const v1::AttendResponse response = Call(request);
  const std::vector<float> output = ToFloats(response.output());
  for (int64_t b = 0; b < 3; ++b) {
    EXPECT_EQ(Rows(output, kE, 2 * b, 2), Alone(Rows(rows, kE, 2 * b, 2), memory));
  }
  EXPECT_EQ(response.execution().tokens(), 6 + 4);
}

TEST_F(CrossAttentionTest, AMemoryThatIsAllPaddingGivesZeros) {
  v1::AttendRequest request = Request({2, 2, kE}, SomeValues(4 * kE, 8));
  request.set_stage(v1::CONTEXT);
  SetMemory({2, 3, kE}, SomeValues(6 * kE, 9), request);
  request.mutable_memory()->add_lengths(0);
  request.mutable_memory()->add_lengths(3);
  const std::vector<float> output = ToFloats(Call(request).output());
  EXPECT_THAT(Rows(output, kE, 0, 2), Each(0.0f));
  EXPECT_NE(output[3 * kE], 0.0f);
  server_.ExpectMetrics(::testing::HasSubstr("attendant_keyless_rows_total{model=\"tiny\"} 8"));
}

TEST_F(CrossAttentionTest, ProbabilitiesAndBiasAreOfQueriesAndRowsOfMemory) {
  v1::AttendRequest request = Request({2, 3, kE}, SomeValues(6 * kE, 10));
  request.add_lengths(3);
  request.add_lengths(1);
  SetMemory({2, 5, kE}, SomeValues(10 * kE, 11), request);
  *request.mutable_memory()->mutable_attention_mask() =
      IntegerTensor({2, 5}, {1, 1, 0, 1, 1, 0, 0, 1, 1, 0});
  request.set_return_attention_probabilities(true);
  // No query may attend to the last row of the memory.
  *request.mutable_attention_bias() = FloatTensor({1, 1, 1, 5}, {0, 0, 0, 0, kMinusInfinity});
  const v1::AttendResponse response = Call(request);
  EXPECT_THAT(ShapeOf(response.attention_probabilities()), ElementsAre(2, kH, 3, 5));
  const std::vector<float> probabilities = ToFloats(response.attention_probabilities());
  for (int64_t h = 0; h < kH; ++h) {
    for (int64_t row = 0; row < 3; ++row) {
      const std::vector<float> first = Rows(probabilities, 5, h * 3 + row, 1);
      EXPECT_NEAR(first[0] + first[1] + first[3], 1.0f, 1e-6);
      EXPECT_EQ(first[2] + first[4], 0.0f);
      const std::vector<float> second = Rows(probabilities, 5, (kH + h) * 3 + row, 1);
      EXPECT_NEAR(second[2] + second[3], row == 0 ? 1.0f : 0.0f, 1e-6);
    }
  }
  // A memory without that row gives the same answer.
  *request.mutable_memory()->mutable_attention_mask() =
      IntegerTensor({2, 5}, {1, 1, 0, 1, 0, 0, 0, 1, 1, 0});
  request.clear_attention_bias();
  const std::vector<float> expected = ToFloats(Call(request).output());
  const std::vector<float> output = ToFloats(response.output());
  for (size_t i = 0; i < output.size(); ++i) EXPECT_NEAR(output[i], expected[i], 2e-6);
}

// Requests that have memories share a batch; requests without one, or with separate values, do not
// join it.
TEST_F(CrossAttentionTest, SharesABatchWithOthersBitForBit) {
  const std::vector<float> rows = SomeValues(12 * kE, 12), memory = SomeValues(20 * kE, 13);
  std::vector<v1::AttendRequest> requests;
  for (int64_t i = 0; i < 4; ++i) {
    requests.push_back(Request({1, i + 1, kE}, Rows(rows, kE, i, i + 1)));
    if (i > 0) SetMemory({1, 5 - i, kE}, Rows(memory, kE, 5 * i, 5 - i), requests.back());
  }
  *requests[3].mutable_memory()->mutable_values() = FloatTensor({1, 2, kE}, Rows(memory, kE, 0, 2));
  std::vector<std::string> alone;
  for (const v1::AttendRequest& request : requests) alone.push_back(Call(request).output().data());
  server_.gate().Close();
  PendingAttend first(server_.stub(), requests[0]);
  server_.gate().AwaitBlocked();
  std::vector<std::unique_ptr<PendingAttend>> pending;
  for (const v1::AttendRequest& request : requests) {
    pending.push_back(std::make_unique<PendingAttend>(server_.stub(), request));
    server_.AwaitQueued(static_cast<int64_t>(pending.size()));
  }
  server_.gate().Open();
  EXPECT_TRUE(first.Wait().ok());
  for (size_t i = 0; i < pending.size(); ++i) {
    EXPECT_TRUE(pending[i]->Wait().ok());
    EXPECT_EQ(pending[i]->response().output().data(), alone[i]) << i;
    EXPECT_EQ(pending[i]->response().execution().batch_requests(), i == 1 || i == 2 ? 2 : 1);
  }
  EXPECT_EQ(pending[1]->response().execution().batch_tokens(), 2 + 4 + 3 + 3);
}

// Like torch's kdim and vdim: keys are made of 5 columns, values of 7.
TEST(MemoryWidthsTest, KeysAndValuesOfTheirOwnWidths) {
  ModelDescription description;
  description.layers = 1;
  description.layer.hidden_size = 8;
  description.layer.attention.heads = 2;
  description.layer.attention.key_width = description.layer.attention.value_width = 4;
  description.layer.attention.score_scale = 0.5f;
  description.layer.norms.placement = NormPlacement::kNone;
  description.layer.attention.key_input_width = 5;
  description.layer.attention.value_input_width = 7;
  TestServerOptions options;
  options.models = ModelOf("pairs", description);
  TestServer server(options);

  v1::AttendRequest request = AttendOf("", FloatTensor({2, 3, 8}, SomeValues(48, 1)));
  v1::Memory& memory = *request.mutable_memory();
  *memory.mutable_hidden_states() = FloatTensor({2, 4, 5}, SomeValues(40, 2));
  *memory.mutable_values() = FloatTensor({2, 4, 7}, SomeValues(56, 3));
  v1::AttendResponse response;
  ASSERT_TRUE(server.Attend(request, &response).ok());
  EXPECT_THAT(ShapeOf(response.output()), ElementsAre(2, 3, 8));
  EXPECT_EQ(response.execution().tokens(), 6 + 8 + 8);

  const auto refusal = [&](const v1::AttendRequest& bad) {
    const grpc::Status status = server.Attend(bad, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    return status.error_message();
  };
  v1::AttendRequest bad = request;
  bad.clear_memory();
  EXPECT_EQ(refusal(bad),
            "memory: expected a memory with keys of 5 columns and values of 7 (queries have 8); "
            "got none; send it with Attend");
  bad = request;
  bad.mutable_memory()->clear_values();
  EXPECT_EQ(refusal(bad),
            "memory.values: expected a tensor with 7 columns (keys have 5); got none");
  v1::EncodeRequest encode;
  *encode.mutable_hidden_states() = request.hidden_states();
  v1::EncodeResponse encoded;
  const grpc::Status status = server.Encode(encode, &encoded);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(),
            "memory: expected a memory with keys of 5 columns and values of 7 (queries have 8); "
            "got none; send it with Attend");

  grpc::ClientContext context;
  v1::GetModelResponse model;
  ASSERT_TRUE(server.stub().GetModel(&context, {}, &model).ok());
  EXPECT_EQ(model.layer().key_input_width(), 5);
  EXPECT_EQ(model.layer().value_input_width(), 7);
}

}  // namespace cross_attention_test
}  // namespace attendant::server
