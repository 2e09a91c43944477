#include "client/json/json_value.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace attendant::client {
namespace json_value_test {

TEST(JsonValueTest, HasScalarsListsAndObjects) {
  EXPECT_EQ(JsonValue().ToLine(), "null");
  EXPECT_EQ(JsonValue(true).ToLine(), "true");
  EXPECT_EQ(JsonValue(3).ToLine(), "3");
  EXPECT_EQ(JsonValue(int64_t{-1} << 62).ToLine(), "-4611686018427387904");
  EXPECT_EQ(JsonValue(3.0).ToLine(), "3.0");
  EXPECT_EQ(JsonValue(std::vector<std::vector<double>>{{0.5}, {}}).ToLine(), "[[0.5],[]]");
  const JsonValue object = {{"z", "text"}, {"a", {{"b", 1}}}, {"list", std::vector<int>{1, 2}}};
  EXPECT_EQ(object.ToLine(), R"({"z":"text","a":{"b":1},"list":[1,2]})");
  EXPECT_EQ(object.ToText(),
            "{\n  \"z\": \"text\",\n  \"a\": {\n    \"b\": 1\n  },\n  \"list\": [\n    1,\n    "
            "2\n  ]\n}");
  EXPECT_EQ(JsonValue::Object({{"a", object}}).Member("a").Member("z").ToLine(), "\"text\"");
  EXPECT_EQ(object.Member("none").ToLine(), "null");
}

TEST(JsonValueTest, ConvertsBothWays) {
  const nlohmann::ordered_json json = {{"b", 1}, {"a", 2}};
  const JsonValue value = json;
  EXPECT_EQ(value.ToLine(), json.dump());
  const nlohmann::ordered_json back = value;
  EXPECT_EQ(back, json);
}

TEST(JsonValueTest, IsUtf8WhateverIsInIt) { EXPECT_EQ(JsonValue("a\xff").ToLine(), "\"a\uFFFD\""); }

TEST(JsonValueTest, OpensAndClosesNoTagInAScript) {
  EXPECT_EQ(JsonValue("</script>&").ToScript(), R"("\u003c/script\u003e\u0026")");
}

}  // namespace json_value_test
}  // namespace attendant::client
