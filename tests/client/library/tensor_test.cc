#include "client/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace attendant::client {
namespace tensor_test {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

TEST(ElementCountTest, MultipliesAndRefuses) {
  EXPECT_EQ(ElementCount({}), 1);
  EXPECT_EQ(ElementCount({2, 3, 4}), 24);
  EXPECT_EQ(ElementCount({2, 0}), 0);
  EXPECT_EQ(ElementCount({-1}), std::nullopt);
  EXPECT_EQ(ElementCount({kHuge, 2}), std::nullopt);
  EXPECT_EQ(ElementCount({kHuge, 2, 0}), std::nullopt);
}

TEST(ValidateTest, RefusesWhatDoesNotFit) {
  EXPECT_TRUE(Validate(FloatTensor({1, 2}, {1.0f, 2.0f})).ok());
  EXPECT_THAT(std::string(Validate({DataType::kInt16, {3}, "abc"}).message()),
              HasSubstr("a int16 tensor of shape [3] takes 6 bytes, not 3"));
  EXPECT_THAT(std::string(Validate({DataType::kFloat32, {kHuge}, ""}).message()),
              HasSubstr("invalid shape"));
  EXPECT_THAT(std::string(Validate({static_cast<DataType>(99), {1}, "a"}).message()),
              HasSubstr("unknown element type 99"));
}

TEST(ToFloatsTest, RefusesIntegers) {
  EXPECT_EQ(ToFloats(Int64Tensor({1}, {1})).status().message(),
            "expected a float tensor; got int64");
  EXPECT_EQ(ToInt64s(FloatTensor({1}, {1.0f})).status().message(),
            "expected an integer tensor; got float32");
}

TEST(ToInt64sTest, ReadsEveryIntegerType) {
  const std::string bytes("\xFF\x00\x00\x00\x00\x00\x00\x00", 8);
  EXPECT_THAT(*ToInt64s({DataType::kBool, {2}, bytes.substr(0, 2)}), ElementsAre(1, 0));
  EXPECT_THAT(*ToInt64s({DataType::kInt8, {1}, bytes.substr(0, 1)}), ElementsAre(-1));
  EXPECT_THAT(*ToInt64s({DataType::kUInt8, {1}, bytes.substr(0, 1)}), ElementsAre(255));
  EXPECT_THAT(*ToInt64s({DataType::kInt16, {1}, bytes.substr(0, 2)}), ElementsAre(255));
  EXPECT_THAT(*ToInt64s({DataType::kUInt16, {1}, bytes.substr(0, 2)}), ElementsAre(255));
  EXPECT_THAT(*ToInt64s({DataType::kInt32, {1}, bytes.substr(0, 4)}), ElementsAre(255));
  EXPECT_THAT(*ToInt64s({DataType::kUInt32, {1}, bytes.substr(0, 4)}), ElementsAre(255));
  EXPECT_THAT(*ToInt64s({DataType::kInt64, {1}, bytes}), ElementsAre(255));
  EXPECT_THAT(*ToInt64s({DataType::kUInt64, {1}, bytes}), ElementsAre(255));
}

TEST(ToInt64sTest, RefusesBeyondInt64) {
  const Tensor tensor{DataType::kUInt64, {1}, std::string(8, '\xFF')};
  EXPECT_EQ(ToInt64s(tensor).status().message(),
            "element 0 is 18446744073709551615, which exceeds int64");
}

uint16_t Bits(float value, DataType dtype) {
  const Tensor converted = ConvertFloat(FloatTensor({1}, {value}), dtype).value();
  uint16_t bits;
  std::memcpy(&bits, converted.data.data(), sizeof(bits));
  return bits;
}

TEST(ConvertFloatTest, RoundsToNearestEvenHalf) {
  EXPECT_EQ(Bits(1.0f, DataType::kFloat16), 0x3C00);
  EXPECT_EQ(Bits(-2.5f, DataType::kFloat16), 0xC100);
  EXPECT_EQ(Bits(65504.0f, DataType::kFloat16), 0x7BFF);
  EXPECT_EQ(Bits(65519.0f, DataType::kFloat16), 0x7BFF);
  EXPECT_EQ(Bits(65520.0f, DataType::kFloat16), 0x7C00);
  EXPECT_EQ(Bits(1.0f + 0x1p-11f, DataType::kFloat16), 0x3C00);      // a tie, to even
  EXPECT_EQ(Bits(1.0f + 3 * 0x1p-11f, DataType::kFloat16), 0x3C02);  // a tie, to even
  EXPECT_EQ(Bits(0x1p-24f, DataType::kFloat16), 0x0001);             // smallest subnormal
  EXPECT_EQ(Bits(0x1p-25f, DataType::kFloat16), 0x0000);             // a tie, to even
  EXPECT_EQ(Bits(1023.6f * 0x1p-24f, DataType::kFloat16), 0x0400);   // rounds up to a normal number
  EXPECT_EQ(Bits(-0.0f, DataType::kFloat16), 0x8000);
  EXPECT_EQ(Bits(-std::numeric_limits<float>::infinity(), DataType::kFloat16), 0xFC00);
  EXPECT_EQ(Bits(std::nanf(""), DataType::kFloat16) & 0x7E00, 0x7E00);
}

TEST(ConvertFloatTest, RoundsToNearestEvenBFloat16) {
  EXPECT_EQ(Bits(1.0f, DataType::kBFloat16), 0x3F80);
  EXPECT_EQ(Bits(1.0f + 0x1p-8f, DataType::kBFloat16), 0x3F80);
  EXPECT_EQ(Bits(1.0f + 3 * 0x1p-8f, DataType::kBFloat16), 0x3F82);
  EXPECT_EQ(Bits(std::numeric_limits<float>::max(), DataType::kBFloat16), 0x7F80);
  EXPECT_EQ(Bits(std::nanf(""), DataType::kBFloat16) & 0x7FC0, 0x7FC0);
}

TEST(ConvertFloatTest, EveryNarrowValueSurvivesTheRoundTrip) {
  for (DataType dtype : {DataType::kFloat16, DataType::kBFloat16}) {
    for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
      const auto narrow = static_cast<uint16_t>(bits);
      Tensor tensor{dtype, {1}, std::string(2, '\0')};
      std::memcpy(tensor.data.data(), &narrow, sizeof(narrow));
      const float value = ToFloats(tensor).value()[0];
      if (std::isnan(value)) continue;  // a NaN stays NaN, but its payload may change
      ASSERT_EQ(Bits(value, dtype), narrow) << Name(dtype);
    }
  }
}

TEST(ConvertFloatTest, RefusesIntegers) {
  EXPECT_EQ(ConvertFloat(FloatTensor({1}, {1.0f}), DataType::kInt8).status().message(),
            "int8 is not a float type");
}

}  // namespace tensor_test
}  // namespace attendant::client
