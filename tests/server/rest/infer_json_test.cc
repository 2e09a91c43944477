// Tests of the reading of bodies, wherever they are cut into slices.
#include "server/rest/infer_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>

#include "server/rest/body_buffer.h"
#include "server/rest/slice_iterator.h"

namespace attendant::server {
namespace infer_json_test {

std::shared_ptr<const MessageSlices> Cut(const std::string& text, size_t piece) {
  auto slices = std::make_shared<MessageSlices>();
  for (size_t at = 0; at < text.size(); at += piece) slices->emplace_back(text.substr(at, piece));
  return slices;
}

std::string BytesOf(const Payload& payload) {
  std::string bytes(static_cast<size_t>(payload.size()), '\0');
  payload.CopyTo(0, payload.size(), bytes.data());
  return bytes;
}

constexpr char kJson[] =
    R"({"id": "x", "parameters": {"a": true, "b": -3, "c": 4, "d": "t", "e": 0.5,
  "binary_data_output": true}, "inputs": [
  {"name": "p", "datatype": "INT16", "shape": [2, 1, 2], "data": [[[1, -2]], [[300, 4]]]},
  {"name": "q", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}},
  {"name": "r", "datatype": "FP32", "shape": [4], "data": [1, -2, 0.1, 1e-45]},
  {"name": "e", "datatype": "BOOL", "shape": [2, 0], "data": [[], []]}],
  "outputs": [{"name": "o"}, {"name": "u", "parameters": {"binary_data": false, "z": 1}}]})";

TEST(InferJsonTest, ReadsTheSameFromAnySlices) {
  const std::string json = kJson, binary = "8 bytes.";
  const int16_t p[] = {1, -2, 300, 4};
  const float r[] = {1, -2, 0.1f, 1e-45f};
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{64}, size_t{1} << 20}) {
    const auto body = Cut(json + binary, piece);
    const auto size = static_cast<int64_t>(json.size());
    const auto head = ReadInferHead(*body, size);
    ASSERT_TRUE(head.ok()) << head.status();
    EXPECT_EQ(head->message.id(), "x");
    EXPECT_EQ(head->message.parameters().at("b").int64_param(), -3);
    EXPECT_EQ(head->message.parameters().at("c").uint64_param(), 4u);
    EXPECT_EQ(head->message.parameters().at("d").string_param(), "t");
    EXPECT_EQ(head->message.parameters().at("e").double_param(), 0.5);
    EXPECT_TRUE(head->message.parameters().at("a").bool_param());
    EXPECT_EQ(head->message.parameters().size(), 5u);
    EXPECT_THAT(head->binary_outputs, testing::ElementsAre(true, false));
    EXPECT_EQ(head->message.outputs(1).parameters().at("z").uint64_param(), 1u);
    EXPECT_EQ(head->packed_bytes(), 8 + 16);
    EXPECT_THAT(head->message.inputs(0).shape(), testing::ElementsAre(2, 1, 2));
    const auto data = ReadInferData(*head, body, size);
    ASSERT_TRUE(data.ok()) << data.status();
    ASSERT_EQ(data->size(), 4u);
    EXPECT_EQ(BytesOf((*data)[0]), std::string(reinterpret_cast<const char*>(p), sizeof p));
    EXPECT_EQ(BytesOf((*data)[1]), binary);
    EXPECT_EQ(BytesOf((*data)[2]), std::string(reinterpret_cast<const char*>(r), sizeof r));
    EXPECT_EQ((*data)[3].size(), 0);
  }
}

TEST(InferJsonTest, ManyTensorsAreRefused) {
  std::string json = "{\"outputs\": [{}";
  for (int i = 0; i < 256; ++i) json += ",{}";
  const auto body = Cut(json + "]}", 1000);
  EXPECT_EQ(ReadInferHead(*body, static_cast<int64_t>(json.size()) + 2).status(),
            absl::InvalidArgumentError("outputs[256]: expected at most 256 tensors; got more"));
}

// Every prefix and every change of one byte is read or refused, and nothing else.
TEST(InferJsonTest, DamagedBodiesAreRefusedOrRead) {
  const std::string json = kJson;
  for (size_t at = 0; at < json.size(); ++at) {
    const auto prefix = Cut(json.substr(0, at), 100);
    EXPECT_FALSE(ReadInferHead(*prefix, static_cast<int64_t>(at)).ok()) << at;
    for (const char change : {'\0', '"', ']', '}', '9', '\xff'}) {
      std::string changed = json;
      changed[at] = change;
      const auto body = Cut(changed + "8 bytes.", 100);
      const auto head = ReadInferHead(*body, static_cast<int64_t>(json.size()));
      if (head.ok()) {
        ReadInferData(*head, body, static_cast<int64_t>(json.size())).status().IgnoreError();
      }
    }
  }
}

TEST(BodyBufferTest, KeepsWhatComesInFewBlocks) {
  std::string all;
  BodyBuffer buffer(300'000);
  for (int i = 0; i < 30; ++i) {
    const std::string part(10'000, static_cast<char>('a' + i % 26));
    EXPECT_GE(buffer.CapacityFor(10'000), buffer.size() + 10'000);
    EXPECT_LE(buffer.CapacityFor(10'000), 300'000);
    buffer.Append(part);
    all += part;
  }
  EXPECT_EQ(buffer.size(), 300'000);
  const MessageSlices slices = buffer.Take();
  EXPECT_LE(slices.size(), 4u);
  EXPECT_EQ(std::string(SliceIterator(slices, 0), SliceIterator(slices, 300'000)), all);
  EXPECT_EQ(buffer.size(), 0);
  EXPECT_TRUE(BodyBuffer(0).Take().empty());
}

}  // namespace infer_json_test
}  // namespace attendant::server
