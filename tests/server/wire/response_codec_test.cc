#include "server/wire/response_codec.h"

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "attendant/v1/encoder_service.pb.h"
#include "inference/inference_service.pb.h"
#include "tests/server/wire/random_wire.h"

namespace attendant::server {
namespace response_codec_test {

using google::protobuf::util::MessageDifferencer;

// A tensor with random dtype, shape and data; without data now and then.
struct RandomTensor {
  explicit RandomTensor(RandomWire& random)
      : data(static_cast<size_t>(random.Below(3) == 0 ? 0 : random.Below(400)), '\0') {
    head.set_dtype(v1::FLOAT32);
    for (int left = random.Below(4); left > 0; --left) head.add_shape(random.Below(1000));
    for (char& byte : data) byte = static_cast<char>(random.Below(256));
  }

  // Adds it as a field, and to the message that is expected.
  void Add(int number, MessageWriter& message, v1::Tensor& expected) const {
    MessageWriter tensor(head);
    if (!data.empty()) tensor.Add(v1::Tensor::kDataFieldNumber, grpc::Slice(data));
    message.Add(number, std::move(tensor));
    expected = head;
    expected.set_data(data);
  }

  v1::Tensor head;
  std::string data;
};

v1::Execution SomeExecution(RandomWire& random) {
  v1::Execution execution;
  execution.set_queue_ns(random.Below(1 << 30));
  execution.set_tokens(random.Below(1000));
  return execution;
}

// Expects that the generated parser reads exactly `expected`.
template <typename Expected>
void ExpectReadsBack(MessageWriter message, const Expected& expected) {
  const std::string bytes = Flatten(std::move(message).Finish());
  Expected parsed;
  ASSERT_TRUE(parsed.ParseFromString(bytes));
  ASSERT_TRUE(MessageDifferencer::Equals(parsed, expected))
      << parsed.DebugString() << expected.DebugString();
  ASSERT_EQ(bytes.size(), expected.ByteSizeLong());
}

// Writes a random mix of fields, which are those of `expected` then.
MessageWriter WriteEncode(RandomWire& random, v1::EncodeResponse& expected) {
  if (random.Below(2)) *expected.mutable_execution() = SomeExecution(random);
  MessageWriter message(expected);
  if (random.Below(2)) RandomTensor(random).Add(1, message, *expected.mutable_hidden_states());
  if (random.Below(2)) RandomTensor(random).Add(2, message, *expected.mutable_pooled());
  for (int i = 0, count = random.Below(5); i < count; ++i) {
    v1::LayerTensor& layer = *expected.add_intermediate();
    layer.set_layer(static_cast<uint32_t>(i));
    MessageWriter element(layer);
    RandomTensor(random).Add(2, element, *layer.mutable_tensor());
    message.Add(3, std::move(element));
  }
  return message;
}

TEST(ResponseCodecTest, AttendResponse) {
  RandomWire random(1);
  for (int i = 0; i < 2000; ++i) {
    v1::AttendResponse expected;
    if (random.Below(2)) *expected.mutable_execution() = SomeExecution(random);
    MessageWriter message(expected);
    if (random.Below(2)) {
      RandomTensor(random).Add(2, message, *expected.mutable_attention_probabilities());
    }
    if (random.Below(4)) RandomTensor(random).Add(1, message, *expected.mutable_output());
    ASSERT_NO_FATAL_FAILURE(ExpectReadsBack(std::move(message), expected));
  }
}

TEST(ResponseCodecTest, EncodeResponse) {
  RandomWire random(2);
  for (int i = 0; i < 5000; ++i) {
    v1::EncodeResponse expected;
    MessageWriter message = WriteEncode(random, expected);
    ASSERT_NO_FATAL_FAILURE(ExpectReadsBack(std::move(message), expected));
  }
}

TEST(ResponseCodecTest, EncodeStreamResponse) {
  RandomWire random(3);
  for (int i = 0; i < 5000; ++i) {
    v1::EncodeStreamResponse expected;
    expected.set_id(static_cast<uint64_t>(i));
    MessageWriter message(expected);
    message.Add(2, WriteEncode(random, *expected.mutable_response()));
    ASSERT_NO_FATAL_FAILURE(ExpectReadsBack(std::move(message), expected));
  }
}

TEST(ResponseCodecTest, ElementsOfBytesStayInOrder) {
  inference::ModelInferResponse expected;
  expected.set_id("7");
  MessageWriter message(expected);
  for (const char* raw : {"first", "", "third"}) {
    message.Add(inference::ModelInferResponse::kRawOutputContentsFieldNumber,
                grpc::Slice(std::string(raw)));
    expected.add_raw_output_contents(raw);
  }
  ExpectReadsBack(std::move(message), expected);
}

TEST(ResponseCodecTest, EmptyResponseIsAnEmptyMessage) {
  const grpc::ByteBuffer buffer = SerializeResponse(v1::AttendResponse());
  EXPECT_TRUE(buffer.Valid());
  EXPECT_EQ(buffer.Length(), 0u);
}

TEST(ResponseCodecTest, SlicesAreNotCopied) {
  const grpc::Slice hidden(std::string(1000, 'h')), tokenizer(std::string(1000, 't'));
  MessageWriter tensor{v1::Tensor()};
  tensor.Add(v1::Tensor::kDataFieldNumber, hidden);
  MessageWriter message{v1::EncodeResponse()};
  message.Add(1, std::move(tensor));
  message.Add(2, tokenizer);
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(std::move(message).Finish().Dump(&slices).ok());
  ASSERT_EQ(slices.size(), 4u);
  EXPECT_EQ(slices[1].begin(), hidden.begin());
  EXPECT_EQ(slices[3].begin(), tokenizer.begin());
}

TEST(ResponseCodecTest, BufferOutlivesTheCallersSlices) {
  MessageWriter message{v1::GetTokenizerResponse()};
  message.Add(1, grpc::Slice(std::string(1000, 'x')));
  const grpc::ByteBuffer buffer = std::move(message).Finish();
  v1::GetTokenizerResponse parsed;
  ASSERT_TRUE(parsed.ParseFromString(Flatten(buffer)));
  EXPECT_EQ(parsed.tokenizer_json(), std::string(1000, 'x'));
}

}  // namespace response_codec_test
}  // namespace attendant::server
