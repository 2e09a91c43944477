#include "client/cli/to_json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "proto/model_json.h"

namespace attendant::client {
namespace to_json_test {

using proto::ToJson;
using Json = nlohmann::ordered_json;

TEST(ToJsonTest, FloatsHaveTheirOwnShortestDigits) {
  EXPECT_EQ(ToJson(0.1f).dump(), "0.1");
  EXPECT_EQ(ToJson(1.936621f).dump(), "1.936621");
  EXPECT_EQ(ToJson(3.0f).dump(), "3.0");
  for (float value : {1.0f / 3, std::numeric_limits<float>::denorm_min(),
                      std::numeric_limits<float>::max(), -0.0f}) {
    EXPECT_EQ(static_cast<float>(Json::parse(ToJson(value).dump()).get<double>()), value);
  }
}

TEST(ToJsonTest, WritesNumbersThatJsonLacksAsNames) {
  EXPECT_EQ(ToJson(std::nanf("")), "NaN");
  EXPECT_EQ(ToJson(std::numeric_limits<float>::infinity()), "Infinity");
  EXPECT_EQ(ToJson(-std::numeric_limits<float>::infinity()), "-Infinity");
}

TEST(ToJsonTest, TensorsNest) {
  EXPECT_EQ(ToJson(FloatTensor({1, 2, 2}, {1, 2, 3, 4})).ToLine(),
            R"({"dtype":"float32","shape":[1,2,2],"values":[[[1.0,2.0],[3.0,4.0]]]})");
  EXPECT_EQ(ToJson(Int64Tensor({2}, {1, 2})).Member("values").ToLine(), "[1,2]");
  EXPECT_EQ(ToJson(FloatTensor({0, 2}, {})).Member("values").ToLine(), "[]");
}

}  // namespace to_json_test
}  // namespace attendant::client
