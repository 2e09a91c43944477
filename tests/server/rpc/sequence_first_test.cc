// Tests of SEQUENCE_FIRST requests over a socket: each has the bits of the same request batch
// first.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/server/support/test_server.h"
#include "tests/server/support/wire_tensors.h"

namespace attendant::server {
namespace sequence_first_test {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr int64_t kE = 32;
constexpr int64_t kH = 4;
constexpr int64_t kB = 3;
constexpr int64_t kS = 4;

// One whole sequence; one with padding on the left and a hole; one with padding on the right and a
// hole.
const std::vector<int64_t> kHoles = {1, 1, 1, 1, 0, 1, 0, 1, 1, 0, 1, 0};

// Returns [B, S, …] as [S, B, …], or the other way round.
v1::Tensor Swapped(const v1::Tensor& tensor) {
  const int64_t outer = tensor.shape(0), inner = tensor.shape(1);
  const size_t width = tensor.data().size() / static_cast<size_t>(outer * inner);
  v1::Tensor swapped = tensor;
  swapped.set_shape(0, inner);
  swapped.set_shape(1, outer);
  swapped.clear_data();
  for (int64_t i = 0; i < inner; ++i) {
    for (int64_t o = 0; o < outer; ++o) {
      *swapped.mutable_data() += tensor.data().substr((o * inner + i) * width, width);
    }
  }
  return swapped;
}

template <typename Request>
void SwapRows(Request& request) {
  for (int64_t& row : *request.mutable_query_rows()) row = row % kS * kB + row / kS;
  request.set_layout(v1::SEQUENCE_FIRST);
}

v1::AttendRequest SequenceFirst(v1::AttendRequest request) {
  SwapRows(request);
  *request.mutable_hidden_states() = Swapped(request.hidden_states());
  if (!request.has_memory()) return request;
  v1::Memory& memory = *request.mutable_memory();
  *memory.mutable_hidden_states() = Swapped(memory.hidden_states());
  if (memory.has_values()) *memory.mutable_values() = Swapped(memory.values());
  return request;
}

v1::EncodeRequest SequenceFirst(v1::EncodeRequest request) {
  SwapRows(request);
  for (v1::Tensor* tensor :
       {request.has_hidden_states() ? request.mutable_hidden_states() : nullptr,
        request.has_features() ? request.mutable_features() : nullptr,
        request.has_token_ids() ? request.mutable_token_ids() : nullptr,
        request.has_token_type_ids() ? request.mutable_token_type_ids() : nullptr,
        request.has_position_ids() ? request.mutable_position_ids() : nullptr}) {
    if (tensor != nullptr) *tensor = Swapped(*tensor);
  }
  return request;
}

class SequenceFirstTest : public ::testing::Test {
 protected:
  v1::AttendResponse Call(const v1::AttendRequest& request) {
    v1::AttendResponse response;
    const grpc::Status status = server_.Attend(request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    response.clear_execution();
    return response;
  }

  v1::EncodeResponse Call(const v1::EncodeRequest& request) {
    v1::EncodeResponse response;
    const grpc::Status status = server_.Encode(request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    truncated_tokens_ = response.execution().truncated_tokens();
    response.clear_execution();
    return response;
  }

  // Returns the answer to the batch-first request.
  v1::AttendResponse ExpectSame(const v1::AttendRequest& request) {
    const v1::AttendResponse batch_first = Call(request);
    v1::AttendResponse response = Call(SequenceFirst(request));
    if (request.query_rows().empty()) *response.mutable_output() = Swapped(response.output());
    EXPECT_EQ(response.SerializeAsString(), batch_first.SerializeAsString());
    return batch_first;
  }

  v1::EncodeResponse ExpectSame(const v1::EncodeRequest& request) {
    const v1::EncodeResponse batch_first = Call(request);
    const int64_t truncated_tokens = truncated_tokens_;
    v1::EncodeResponse response = Call(SequenceFirst(request));
    EXPECT_EQ(truncated_tokens_, truncated_tokens);
    if (request.query_rows().empty()) {
      *response.mutable_hidden_states() = Swapped(response.hidden_states());
    }
    for (v1::LayerTensor& layer : *response.mutable_intermediate()) {
      *layer.mutable_tensor() = Swapped(layer.tensor());
    }
    EXPECT_EQ(response.SerializeAsString(), batch_first.SerializeAsString());
    return batch_first;
  }

  void ExpectRefusal(const grpc::Status& status, const std::string& message) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(status.error_message(), message);
  }

  TestServer server_;
  int64_t truncated_tokens_ = 0;
};

// Returns [B, S, E] for the mask kHoles; its padding would spoil the result of anything that read
// it.
v1::Tensor Holed() {
  std::vector<float> values = SomeValues(kB * kS * kE, 1);
  for (size_t row = 0; row < kHoles.size(); ++row) {
    if (kHoles[row] == 0) std::fill_n(values.begin() + row * kE, kE, std::nanf(""));
  }
  return FloatTensor({kB, kS, kE}, values);
}

v1::AttendRequest HoledAttend() {
  v1::AttendRequest request = AttendOf("tiny", Holed());
  request.set_layer(1);
  *request.mutable_attention_mask() = IntegerTensor({kB, kS}, kHoles, v1::BOOL);
  return request;
}

TEST_F(SequenceFirstTest, AttendAnswersEveryTensorTheSame) {
  v1::AttendRequest request = HoledAttend();
  *request.mutable_attention_bias() =
      FloatTensor({kB, kH, kS, kS}, SomeValues(kB * kH * kS * kS, 2));
  request.set_return_attention_probabilities(true);
  request.set_return_weighted_values(true);
  for (const v1::AttendStage stage : {v1::CONTEXT, v1::PROJECTED, v1::BLOCK}) {
    request.set_stage(stage);
    const std::vector<float> output = ToFloats(ExpectSame(request).output());
    for (size_t row = 0; row < kHoles.size(); ++row) {
      if (kHoles[row] != 0) continue;
      EXPECT_THAT(Rows(output, kE, row, 1), Each(0.0f));
    }
  }
  request.set_attention_form(v1::HEAD_MEAN);
  ExpectSame(request);
  request.set_attention_form(v1::TOP_KEYS);
  request.set_attention_top_k(3);
  ExpectSame(request);
}

TEST_F(SequenceFirstTest, TheAnswerHasTheShapeOfTheRequest) {
  const v1::AttendResponse response = Call(SequenceFirst(HoledAttend()));
  EXPECT_THAT(ShapeOf(response.output()), ElementsAre(kS, kB, kE));
}

TEST_F(SequenceFirstTest, LengthsAndMasksAreOfSequences) {
  v1::AttendRequest request = HoledAttend();
  request.clear_attention_mask();
  *request.mutable_hidden_states() = FloatTensor({kB, kS, kE}, SomeValues(kB * kS * kE, 3));
  ExpectSame(request);
  for (const int64_t length : {2, 0, 4}) request.add_lengths(length);
  const std::vector<float> output = ToFloats(ExpectSame(request).output());
  EXPECT_THAT(Rows(output, kE, 2, 6), Each(0.0f));
}

// Rows are numbered in the order of the request: s B + b.
TEST_F(SequenceFirstTest, QueryRowsCountAsTheyLie) {
  v1::AttendRequest attend = HoledAttend();
  for (const int64_t row : {7, 0, 4, 11, 10, 7}) attend.add_query_rows(row);  // 4, 11: padding
  EXPECT_THAT(SequenceFirst(attend).query_rows(), ElementsAre(10, 0, 1, 11, 8, 10));
  const v1::AttendResponse some = ExpectSame(attend);
  const std::vector<float> all = ToFloats(Call(HoledAttend()).output());
  EXPECT_EQ(Rows(ToFloats(some.output()), kE, 0, 1), Rows(all, kE, 7, 1));

  v1::EncodeRequest encode;
  encode.set_model("tiny");
  *encode.mutable_hidden_states() = attend.hidden_states();
  *encode.mutable_attention_mask() = attend.attention_mask();
  *encode.mutable_query_rows() = attend.query_rows();
  ExpectSame(encode);
}

TEST_F(SequenceFirstTest, EncodeAnswersEveryTensorTheSame) {
  for (const v1::DataType dtype : {v1::FLOAT32, v1::BFLOAT16}) {
    v1::EncodeRequest request;
    request.set_model("tiny");
    *request.mutable_hidden_states() = FloatTensor({kB, kS, kE}, ToFloats(Holed()), dtype);
    *request.mutable_attention_mask() = IntegerTensor({kB, kS}, kHoles);
    request.add_intermediate_layers(1);
    request.add_intermediate_layers(0);
    request.add_attention_layers(1);
    request.set_attention_form(v1::TOP_KEYS);
    request.set_attention_top_k(2);
    request.set_return_pooled(true);
    request.set_pooling(v1::POSITION_WEIGHTED_MEAN);
    const v1::EncodeResponse response = ExpectSame(request);
    EXPECT_THAT(ShapeOf(response.pooled()), ElementsAre(kB, kE));
  }
}

TEST_F(SequenceFirstTest, TokenIdsWithPositionsAndTypes) {
  for (const char* model : {"tiny", "counting"}) {
    v1::EncodeRequest request;
    request.set_model(model);
    *request.mutable_token_ids() =
        IntegerTensor({kB, kS}, {1, 2, 3, 4, -1, 5, -1, 6, 7, -1, 8, -1}, v1::INT32);
    *request.mutable_attention_mask() = IntegerTensor({kB, kS}, kHoles);
    ExpectSame(request);
    *request.mutable_position_ids() =
        IntegerTensor({kB, kS}, {9, 8, 7, 6, -1, 5, -1, 4, 3, -1, 2, -1});
    ExpectSame(request);
    if (request.model() != "tiny") continue;
    *request.mutable_token_type_ids() =
        IntegerTensor({kB, kS}, {0, 1, 0, 1, -1, 1, -1, 0, 1, -1, 1, -1}, v1::INT8);
    ExpectSame(request);
  }
}

// "tiny" has 64 positions.
TEST_F(SequenceFirstTest, TruncatesEachSequence) {
  constexpr int64_t kLong = 70;
  std::vector<int64_t> ids, mask;
  for (int64_t i = 0; i < 2 * kLong; ++i) {
    ids.push_back((i * 37 + 11) % 100);
    mask.push_back(i < kLong || i % 5 != 0 ? 1 : 0);
  }
  v1::EncodeRequest request;
  request.set_model("tiny");
  *request.mutable_token_ids() = IntegerTensor({2, kLong}, ids);
  *request.mutable_attention_mask() = IntegerTensor({2, kLong}, mask);
  for (const v1::Truncation side : {v1::TRUNCATE_RIGHT, v1::TRUNCATE_LEFT}) {
    request.set_truncation(side);
    ExpectSame(request);
    EXPECT_GT(truncated_tokens_, 6);
  }
}

// "patches" puts its own rows before each sequence.
TEST_F(SequenceFirstTest, FeaturesGetTheRowsOfTheModel) {
  v1::EncodeRequest request;
  request.set_model("patches");
  *request.mutable_features() = FloatTensor({kB, 3, kE}, SomeValues(kB * 3 * kE, 4));
  request.add_intermediate_layers(0);
  request.add_attention_layers(1);
  ExpectSame(request);
  *request.mutable_attention_mask() = IntegerTensor({kB, 3}, {1, 0, 1, 0, 0, 0, 0, 1, 1});
  EXPECT_THAT(ShapeOf(ExpectSame(request).hidden_states()), ElementsAre(kB, 6, kE));
}

TEST_F(SequenceFirstTest, AMemoryHasTheLayoutOfItsRequest) {
  v1::AttendRequest request = HoledAttend();
  request.set_return_attention_probabilities(true);
  v1::Memory& memory = *request.mutable_memory();
  *memory.mutable_hidden_states() = FloatTensor({kB, 5, kE}, SomeValues(kB * 5 * kE, 5));
  ExpectSame(request);
  *memory.mutable_values() = FloatTensor({kB, 5, kE}, SomeValues(kB * 5 * kE, 6));
  *memory.mutable_attention_mask() =
      IntegerTensor({kB, 5}, {0, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 0});
  ExpectSame(request);
  // One memory for all sequences.
  memory.clear_values();
  memory.clear_attention_mask();
  *memory.mutable_hidden_states() = FloatTensor({1, 5, kE}, SomeValues(5 * kE, 7));
  ExpectSame(request);
}

TEST_F(SequenceFirstTest, ARegisteredMemoryMayHaveAnotherLayout) {
  v1::AttendRequest given = HoledAttend();
  *given.mutable_memory()->mutable_hidden_states() =
      FloatTensor({kB, 5, kE}, SomeValues(kB * 5 * kE, 8));
  for (const int64_t length : {5, 2, 3}) given.mutable_memory()->add_lengths(length);
  v1::PutMemoryRequest put;
  put.set_model(given.model());
  put.set_layer(given.layer());
  *put.mutable_memory() = SequenceFirst(given).memory();
  put.set_layout(v1::SEQUENCE_FIRST);
  grpc::ClientContext context;
  v1::PutMemoryResponse kept;
  const grpc::Status status = server_.stub().PutMemory(&context, put, &kept);
  ASSERT_TRUE(status.ok()) << status.error_message();
  v1::AttendRequest registered = HoledAttend();
  registered.set_memory_handle(kept.handle());
  EXPECT_EQ(ExpectSame(registered).output().data(), Call(given).output().data());
}

TEST_F(SequenceFirstTest, ItemsOfAStreamSayItThemselves) {
  v1::EncodeRequest request;
  request.set_model("tiny");
  *request.mutable_token_ids() = IntegerTensor({2, 3}, {1, 2, 3, 4, 5, 6});
  const v1::Tensor expected = Call(request).hidden_states();
  grpc::ClientContext context;
  const auto stream = server_.stub().EncodeStream(&context);
  v1::EncodeStreamRequest item;
  *item.mutable_request() = request;
  ASSERT_TRUE(stream->Write(item));
  item.set_id(1);
  *item.mutable_request() = SequenceFirst(request);
  ASSERT_TRUE(stream->Write(item));
  stream->WritesDone();
  v1::EncodeStreamResponse answer;
  int answers = 0;
  while (stream->Read(&answer)) {
    ++answers;
    const v1::Tensor& states = answer.response().hidden_states();
    EXPECT_EQ((answer.id() == 1 ? Swapped(states) : states).data(), expected.data());
  }
  EXPECT_EQ(answers, 2);
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(SequenceFirstTest, RefusesWhatIsPacked) {
  v1::AttendRequest attend = HoledAttend();
  attend.clear_attention_mask();
  attend.set_layout(v1::SEQUENCE_FIRST);
  *attend.mutable_hidden_states() = FloatTensor({kS, kE}, SomeValues(kS * kE, 1));
  attend.add_lengths(kS);
  v1::AttendResponse attended;
  ExpectRefusal(server_.Attend(attend, &attended),
                "layout: expected BATCH_FIRST with packed hidden_states; got SEQUENCE_FIRST");

  attend = SequenceFirst(HoledAttend());
  *attend.mutable_memory()->mutable_hidden_states() = FloatTensor({5, kE}, SomeValues(5 * kE, 1));
  for (const int64_t length : {1, 2, 2}) attend.mutable_memory()->add_lengths(length);
  ExpectRefusal(
      server_.Attend(attend, &attended),
      "layout: expected BATCH_FIRST with packed memory.hidden_states; got SEQUENCE_FIRST");

  v1::EncodeRequest encode;
  encode.set_model("tiny");
  encode.set_layout(v1::SEQUENCE_FIRST);
  *encode.mutable_token_ids() = IntegerTensor({3}, {1, 2, 3});
  encode.add_lengths(3);
  v1::EncodeResponse encoded;
  ExpectRefusal(server_.Encode(encode, &encoded),
                "layout: expected BATCH_FIRST with packed token_ids; got SEQUENCE_FIRST");
}

TEST_F(SequenceFirstTest, RefusesLayoutsThatItDoesNotKnow) {
  constexpr auto kUnknown = static_cast<v1::Layout>(2);
  const std::string message = "layout: expected a Layout value; got 2";
  v1::AttendRequest attend = HoledAttend();
  attend.set_layout(kUnknown);
  v1::AttendResponse attended;
  ExpectRefusal(server_.Attend(attend, &attended), message);

  v1::EncodeRequest encode;
  encode.set_model("tiny");
  encode.set_layout(kUnknown);
  *encode.mutable_token_ids() = IntegerTensor({1, 2}, {1, 2});
  v1::EncodeResponse encoded;
  ExpectRefusal(server_.Encode(encode, &encoded), message);

  v1::PutMemoryRequest put;
  put.set_model("tiny");
  put.set_layout(kUnknown);
  *put.mutable_memory()->mutable_hidden_states() = FloatTensor({1, 1, kE}, SomeValues(kE, 1));
  grpc::ClientContext context;
  v1::PutMemoryResponse kept;
  ExpectRefusal(server_.stub().PutMemory(&context, put, &kept), message);
}

// Messages speak of the tensors in their original layout.
TEST_F(SequenceFirstTest, RefusalsNameThePlaceInTheTensor) {
  v1::AttendRequest attend = SequenceFirst(HoledAttend());
  *attend.mutable_attention_mask() = IntegerTensor({kS, kB}, std::vector<int64_t>(kS * kB, 1));
  v1::AttendResponse attended;
  ExpectRefusal(server_.Attend(attend, &attended),
                "attention_mask.shape: expected [B, S] = [3, 4]; got [4, 3]");
  attend = SequenceFirst(HoledAttend());
  attend.mutable_hidden_states()->set_shape(2, 16);
  ExpectRefusal(server_.Attend(attend, &attended),
                "hidden_states.shape: expected [S, B, 32]; got [4, 3, 16]");
  attend = SequenceFirst(HoledAttend());
  *attend.mutable_memory()->mutable_hidden_states() =
      FloatTensor({5, kB, kE}, SomeValues(5 * kB * kE, 1));
  *attend.mutable_memory()->mutable_values() = FloatTensor({5, 1, kE}, SomeValues(5 * kE, 1));
  ExpectRefusal(server_.Attend(attend, &attended),
                "memory.values.shape: expected [M, B, V] = [5, 3, 32]; got [5, 1, 32]");

  v1::EncodeRequest encode;
  encode.set_model("tiny");
  encode.set_layout(v1::SEQUENCE_FIRST);
  *encode.mutable_token_ids() = IntegerTensor({3, 2}, {1, 2, 3, 4, 100, 6});
  v1::EncodeResponse encoded;
  ExpectRefusal(server_.Encode(encode, &encoded), "token_ids[2, 0]: expected 0..99; got 100");
  encode.mutable_token_ids()->add_shape(1);
  ExpectRefusal(server_.Encode(encode, &encoded),
                "token_ids.shape: expected [S, B]; got [3, 2, 1]");
}

}  // namespace sequence_first_test
}  // namespace attendant::server
