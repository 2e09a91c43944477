#include "server/rest/infer_content.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "server/http/http_content.h"
#include "tests/server/support/wire_tensors.h"

namespace attendant::server {
namespace infer_content_test {

using Json = nlohmann::json;

void Add(InferAnswer& answer, const std::string& name, const std::vector<float>& values) {
  auto& output = *answer.message.add_outputs();
  output.set_name(name);
  output.set_datatype("FP32");
  output.add_shape(static_cast<int64_t>(values.size()));
  answer.raw.emplace_back(values.data(), values.size() * sizeof(float));
}

std::string ReadAll(const HttpAnswer& infer, size_t most) {
  HttpContent& content = *infer.content;
  std::string all, piece(most, '\0');
  while (static_cast<int64_t>(all.size()) < content.size()) {
    const size_t got = content.Read(piece.data(), most);
    EXPECT_GT(got, 0u);
    if (got == 0) break;
    all += piece.substr(0, got);
  }
  return all;
}

std::vector<float> Difficult() {
  using Limits = std::numeric_limits<float>;
  std::vector<float> values = {
      0.0f,        -0.0f, 1e-45f,   Limits::max(),    Limits::min(), Limits::lowest(),
      16777217.0f, 0.1f,  1.0f / 3, Limits::epsilon()};
  const std::vector<float> more = SomeValues(1000, 3);
  values.insert(values.end(), more.begin(), more.end());
  return values;
}

InferAnswer SomeAnswer() {
  InferAnswer answer;
  answer.message.set_model_name("m");
  answer.message.set_model_version("1");
  answer.message.set_id("an \"id\"");
  Add(answer, "a", Difficult());
  Add(answer, "b", {1, 2});
  Add(answer, "c", {3});
  Add(answer, "none", {});
  return answer;
}

TEST(MakeInferContentTest, IsTheSameInPiecesOfAnySize) {
  const HttpAnswer whole = MakeInferContent(SomeAnswer(), {false, true, true, false});
  const std::string text = ReadAll(whole, 1 << 20);
  for (const size_t most : {1, 2, 3, 7, 33, 100, 16384}) {
    const HttpAnswer content = MakeInferContent(SomeAnswer(), {false, true, true, false});
    EXPECT_EQ(ReadAll(content, most), text) << most;
  }
  EXPECT_EQ(whole.content->size(), static_cast<int64_t>(text.size()));
  EXPECT_EQ(whole.content_type, "application/octet-stream");
  ASSERT_EQ(whole.headers.size(), 1u);
  EXPECT_EQ(whole.headers[0].first, "Inference-Header-Content-Length");
  const size_t head = std::stoul(whole.headers[0].second);
  EXPECT_EQ(text.size() - head, 12u);
  const Json json = Json::parse(text.substr(0, head));
  EXPECT_EQ(json["id"], "an \"id\"");
  EXPECT_EQ(json["outputs"][1]["parameters"]["binary_data_size"], 8);
  EXPECT_FALSE(json["outputs"][1].contains("data"));
  EXPECT_EQ(json["outputs"][3]["data"], Json::array());
  float behind[3];
  std::memcpy(behind, text.data() + head, sizeof behind);
  EXPECT_THAT(behind, testing::ElementsAre(1, 2, 3));
}

TEST(MakeInferContentTest, FloatsKeepTheirBits) {
  const HttpAnswer content = MakeInferContent(SomeAnswer(), {false, false, false, false});
  const Json json = Json::parse(ReadAll(content, 1000));
  const auto read = json["outputs"][0]["data"].get<std::vector<float>>();
  const std::vector<float> expected = Difficult();
  ASSERT_EQ(read.size(), expected.size());
  EXPECT_EQ(std::memcmp(read.data(), expected.data(), read.size() * sizeof(float)), 0);
  EXPECT_EQ(content.content_type, "application/json");
  EXPECT_TRUE(content.headers.empty());
}

TEST(MakeInferContentTest, WhatJsonDoesNotHaveIsNull) {
  InferAnswer answer;
  Add(answer, "a", {NAN, 1, std::numeric_limits<float>::infinity()});
  const HttpAnswer content = MakeInferContent(std::move(answer), {false});
  EXPECT_EQ(Json::parse(ReadAll(content, 10))["outputs"][0]["data"], Json({nullptr, 1.0, nullptr}));
}

}  // namespace infer_content_test
}  // namespace attendant::server
