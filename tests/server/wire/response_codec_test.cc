#include "server/wire/response_codec.h"

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "attendant/v1/encoder_service.pb.h"
#include "tests/server/wire/random_wire.h"

namespace attendant::server {
namespace response_codec_test {

using google::protobuf::Message;
using google::protobuf::util::MessageDifferencer;

// Returns the Tensor at `path`, and creates it and its parents if they do not exist.
v1::Tensor& TensorAt(Message& message, const std::vector<int>& path) {
  Message* at = &message;
  for (size_t i = 0; i < path.size(); ++i) {
    const auto* field = at->GetDescriptor()->FindFieldByNumber(path[i]);
    at = field->is_repeated() ? at->GetReflection()->MutableRepeatedMessage(at, field, path[++i])
                              : at->GetReflection()->MutableMessage(at, field);
  }
  return static_cast<v1::Tensor&>(*at);
}

// Serialises `response` with data for the tensors at `paths`, and expects that the generated parser
// reads exactly that.
void ExpectReadsBack(const Message& response, const std::vector<std::vector<int>>& paths,
                     RandomWire& random) {
  const std::unique_ptr<Message> expected(response.New());
  expected->CopyFrom(response);
  std::vector<ResponsePayload> payloads;
  for (const std::vector<int>& path : paths) {
    std::string data(static_cast<size_t>(random.Below(3) == 0 ? 0 : random.Below(400)), '\0');
    for (char& byte : data) byte = static_cast<char>(random.Below(256));
    TensorAt(*expected, path).set_data(data);
    payloads.push_back({path, grpc::Slice(data)});
  }
  const std::string bytes = Flatten(SerializeResponse(response, payloads));
  const std::unique_ptr<Message> parsed(response.New());
  ASSERT_TRUE(parsed->ParseFromString(bytes));
  ASSERT_TRUE(MessageDifferencer::Equals(*parsed, *expected))
      << parsed->DebugString() << expected->DebugString();
  ASSERT_EQ(bytes.size(), expected->ByteSizeLong());
  ASSERT_EQ(Flatten(SerializeResponse(response, std::move(payloads))), bytes) << "deterministic";
}

v1::Tensor Described(RandomWire& random) {
  v1::Tensor tensor;
  tensor.set_dtype(v1::FLOAT32);
  for (int left = random.Below(4); left > 0; --left) tensor.add_shape(random.Below(1000));
  return tensor;
}

v1::Execution SomeExecution(RandomWire& random) {
  v1::Execution execution;
  execution.set_queue_ns(random.Below(1 << 30));
  execution.set_tokens(random.Below(1000));
  return execution;
}

// Fills `response` with a random mix of fields. Returns the paths of its tensors under `prefix`, in
// random order.
std::vector<std::vector<int>> Fill(v1::EncodeResponse& response, const std::vector<int>& prefix,
                                   RandomWire& random) {
  std::vector<std::vector<int>> paths;
  const auto add = [&](std::initializer_list<int> rest) {
    if (random.Below(8) == 0) return;  // a tensor without data
    std::vector<int>& path = paths.emplace_back(prefix);
    path.insert(path.end(), rest);
    std::swap(path, paths[static_cast<size_t>(random.Below(static_cast<int>(paths.size())))]);
  };
  if (random.Below(2)) *response.mutable_hidden_states() = Described(random), add({1});
  if (random.Below(2)) *response.mutable_pooled() = Described(random), add({2});
  for (int i = 0, count = random.Below(5); i < count; ++i) {
    v1::LayerTensor& layer = *response.add_intermediate();
    layer.set_layer(static_cast<uint32_t>(i));
    *layer.mutable_tensor() = Described(random);
    add({3, i, 2});
  }
  for (int i = 0, count = random.Below(5); i < count; ++i) {
    *response.add_attention_probabilities()->mutable_tensor() = Described(random);
    add({4, i, 2});
  }
  if (random.Below(2)) *response.mutable_execution() = SomeExecution(random);
  return paths;
}

TEST(ResponseCodecTest, AttendResponse) {
  RandomWire random(1);
  for (int i = 0; i < 2000; ++i) {
    v1::AttendResponse response;
    std::vector<std::vector<int>> paths;
    if (random.Below(4)) *response.mutable_output() = Described(random), paths.push_back({1});
    if (random.Below(2)) {
      *response.mutable_attention_probabilities() = Described(random);
      paths.insert(paths.begin(), {2});
    }
    if (random.Below(2)) *response.mutable_execution() = SomeExecution(random);
    ASSERT_NO_FATAL_FAILURE(ExpectReadsBack(response, paths, random));
  }
}

TEST(ResponseCodecTest, EncodeResponse) {
  RandomWire random(2);
  for (int i = 0; i < 5000; ++i) {
    v1::EncodeResponse response;
    const auto paths = Fill(response, {}, random);
    ASSERT_NO_FATAL_FAILURE(ExpectReadsBack(response, paths, random));
  }
}

TEST(ResponseCodecTest, EncodeStreamResponse) {
  RandomWire random(3);
  for (int i = 0; i < 5000; ++i) {
    v1::EncodeStreamResponse response;
    response.set_id(static_cast<uint64_t>(i));
    std::vector<std::vector<int>> paths;
    if (i % 7 == 0) {
      response.mutable_error()->set_code(3);
      response.mutable_error()->set_message("refused");
    } else {
      paths = Fill(*response.mutable_response(), {2}, random);
    }
    ASSERT_NO_FATAL_FAILURE(ExpectReadsBack(response, paths, random));
  }
}

TEST(ResponseCodecTest, TensorThatIsNotInTheResponseIsMade) {
  RandomWire random(4);
  ExpectReadsBack(v1::EncodeStreamResponse(), {{2, 1}}, random);
}

TEST(ResponseCodecTest, EmptyResponseIsAnEmptyMessage) {
  const grpc::ByteBuffer buffer = SerializeResponse(v1::AttendResponse(), {});
  EXPECT_TRUE(buffer.Valid());
  EXPECT_EQ(buffer.Length(), 0u);
}

TEST(ResponseCodecTest, PayloadsAreNotCopied) {
  v1::EncodeResponse response;
  response.add_intermediate();
  response.add_intermediate();
  const grpc::Slice hidden(std::string(1000, 'h'));
  const grpc::Slice layer(std::string(1000, 'l'));
  const grpc::ByteBuffer buffer = SerializeResponse(response, {{{3, 1, 2}, layer}, {{1}, hidden}});
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(buffer.Dump(&slices).ok());
  ASSERT_EQ(slices.size(), 4u);
  EXPECT_EQ(slices[1].begin(), hidden.begin());
  EXPECT_EQ(slices[3].begin(), layer.begin());
}

TEST(ResponseCodecTest, TakesAFieldOfBytes) {
  v1::GetTokenizerResponse response;
  response.add_labels("good");
  const grpc::Slice tokenizer(std::string(1000, 't'));
  const grpc::ByteBuffer buffer = SerializeResponse(response, {{{1}, tokenizer}});
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(buffer.Dump(&slices).ok());
  EXPECT_EQ(slices.back().begin(), tokenizer.begin()) << "not copied";
  v1::GetTokenizerResponse parsed;
  ASSERT_TRUE(parsed.ParseFromString(Flatten(buffer)));
  EXPECT_EQ(parsed.tokenizer_json(), std::string(1000, 't'));
  EXPECT_EQ(parsed.labels(0), "good");
}

TEST(ResponseCodecTest, BufferOutlivesTheCallersSlices) {
  v1::AttendResponse response;
  response.mutable_output()->add_shape(1000);
  const grpc::ByteBuffer buffer =
      SerializeResponse(response, {{{1}, grpc::Slice(std::string(1000, 'x'))}});
  v1::AttendResponse parsed;
  ASSERT_TRUE(parsed.ParseFromString(Flatten(buffer)));
  EXPECT_EQ(parsed.output().data(), std::string(1000, 'x'));
}

}  // namespace response_codec_test
}  // namespace attendant::server
