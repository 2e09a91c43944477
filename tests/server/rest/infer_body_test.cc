// Tests of the reading of bodies, wherever they are cut into slices.
#include "server/rest/infer_body.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>

#include "server/rest/body_buffer.h"

namespace attendant::server {
namespace infer_body_test {

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
  {"data": [1, -2, 0.1, 1e-45], "datatype": "FP32", "name": "r", "shape": [4]},
  {"name": "e", "datatype": "BOOL", "shape": [2, 0], "data": [[], []]}],
  "outputs": [{"name": "o"}, {"name": "u", "parameters": {"binary_data": false, "z": 1}}]})";

absl::Status Allow(int64_t) { return absl::OkStatus(); }

TEST(InferBodyTest, ReadsTheSameFromAnySlices) {
  const std::string json = kJson, binary = "8 bytes.";
  const int16_t p[] = {1, -2, 300, 4};
  const float r[] = {1, -2, 0.1f, 1e-45f};
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{64}, size_t{1} << 20}) {
    int64_t reserved = 0;
    const auto read = ReadInferBody(Cut(json + binary, piece), static_cast<int64_t>(json.size()),
                                    [&](int64_t bytes) {
                                      reserved = bytes;
                                      return absl::OkStatus();
                                    });
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->message.id(), "x");
    EXPECT_EQ(read->message.parameters().at("b").int64_param(), -3);
    EXPECT_EQ(read->message.parameters().at("c").uint64_param(), 4u);
    EXPECT_EQ(read->message.parameters().at("d").string_param(), "t");
    EXPECT_EQ(read->message.parameters().at("e").double_param(), 0.5);
    EXPECT_TRUE(read->message.parameters().at("a").bool_param());
    EXPECT_EQ(read->message.parameters().size(), 5u);
    EXPECT_THAT(read->binary_outputs, testing::ElementsAre(true, false));
    EXPECT_EQ(read->message.outputs(1).parameters().at("z").uint64_param(), 1u);
    EXPECT_EQ(read->packed_bytes, 8 + 16);
    EXPECT_EQ(reserved, 8 + 16);
    EXPECT_THAT(read->message.inputs(0).shape(), testing::ElementsAre(2, 1, 2));
    ASSERT_EQ(read->data.size(), 4u);
    EXPECT_EQ(BytesOf(read->data[0]), std::string(reinterpret_cast<const char*>(p), sizeof p));
    EXPECT_EQ(BytesOf(read->data[1]), binary);
    EXPECT_EQ(BytesOf(read->data[2]), std::string(reinterpret_cast<const char*>(r), sizeof r));
    EXPECT_EQ(read->data[3].size(), 0);
  }
}

TEST(InferBodyTest, ManyTensorsAreRefused) {
  std::string json = "{\"outputs\": [{}";
  for (int i = 0; i < 256; ++i) json += ",{}";
  const auto body = Cut(json + "]}", 1000);
  EXPECT_EQ(ReadInferBody(body, static_cast<int64_t>(json.size()) + 2, Allow).status(),
            absl::InvalidArgumentError("outputs[256]: expected at most 256 tensors; got more"));
}

// Wherever the data stands, and however large a shape claims to be.
TEST(InferBodyTest, NoNumberDecidesHowMuchMemoryIsNeeded) {
  for (const std::string input :
       {R"({"inputs": [{"datatype": "INT64", "shape": [1000000000000], "data": [1, 2]}]})",
        R"({"inputs": [{"data": [1, 2], "datatype": "INT64", "shape": [1000000000000]}]})"}) {
    int64_t reserved = 0;
    const auto size = static_cast<int64_t>(input.size());
    const auto read = ReadInferBody(Cut(input, 10), size, [&](int64_t bytes) {
      reserved = bytes;
      return absl::OkStatus();
    });
    EXPECT_EQ(
        read.status(),
        absl::InvalidArgumentError(
            "inputs[0]: expected data with as many elements as shape [1000000000000]; got 2"));
    EXPECT_LE(reserved, 4 * size);
  }
}

TEST(InferBodyTest, NothingIsReadWithoutMemory) {
  for (const std::string input :
       {R"({"inputs": [{"datatype": "INT64", "shape": [2], "data": [1, 2]}]})",
        R"({"inputs": [{"data": [1, 2], "datatype": "INT64", "shape": [2]}]})"}) {
    const absl::Status none = absl::ResourceExhaustedError("no memory");
    EXPECT_EQ(ReadInferBody(Cut(input, 10), static_cast<int64_t>(input.size()),
                            [&](int64_t) { return none; })
                  .status(),
              none);
  }
}

// Every prefix and every change of one byte is read or refused, and nothing else.
TEST(InferBodyTest, DamagedBodiesAreRefusedOrRead) {
  const std::string json = kJson;
  for (size_t at = 0; at < json.size(); ++at) {
    const auto prefix = Cut(json.substr(0, at), 100);
    EXPECT_FALSE(ReadInferBody(prefix, static_cast<int64_t>(at), Allow).ok()) << at;
    for (const char change : {'\0', '"', ']', '}', '9', '\xff'}) {
      std::string changed = json;
      changed[at] = change;
      ReadInferBody(Cut(changed + "8 bytes.", 100), static_cast<int64_t>(json.size()), Allow)
          .status()
          .IgnoreError();
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
  std::string taken;
  for (const grpc::Slice& slice : slices) {
    taken.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  EXPECT_EQ(taken, all);
  EXPECT_EQ(buffer.size(), 0);
  EXPECT_TRUE(BodyBuffer(0).Take().empty());
}

}  // namespace infer_body_test
}  // namespace attendant::server
