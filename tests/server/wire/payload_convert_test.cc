#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "server/wire/payload.h"
#include "tests/server/wire/random_wire.h"

namespace attendant::server {
namespace payload_convert_test {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

std::shared_ptr<const MessageSlices> Dump(const grpc::ByteBuffer& buffer) {
  auto slices = std::make_shared<MessageSlices>();
  EXPECT_TRUE(buffer.Dump(slices.get()).ok());
  return slices;
}

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

template <typename T>
T At(const std::string& bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * int64_t{sizeof(T)}, sizeof(T));
  return value;
}

float HalfToFloat(uint16_t half) {
  const float sign = half & 0x8000 ? -1.0f : 1.0f;
  const int exponent = half >> 10 & 31;
  const int fraction = half & 1023;
  if (exponent == 31) return fraction ? std::nanf("") : sign * HUGE_VALF;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
}

float FloatAt(DataType dtype, const std::string& bytes, int64_t index) {
  switch (dtype) {
    case DataType::kFloat16:
      return HalfToFloat(At<uint16_t>(bytes, index));
    case DataType::kBFloat16: {
      const uint32_t bits = uint32_t{At<uint16_t>(bytes, index)} << 16;
      float value;
      std::memcpy(&value, &bits, sizeof(value));
      return value;
    }
    case DataType::kFloat32:
      return At<float>(bytes, index);
    default:
      return static_cast<float>(At<double>(bytes, index));
  }
}

int64_t IntegerAt(DataType dtype, const std::string& bytes, int64_t index) {
  switch (dtype) {
    case DataType::kBool:
      return bytes[static_cast<size_t>(index)] != 0;
    case DataType::kInt8:
      return At<int8_t>(bytes, index);
    case DataType::kUInt8:
      return At<uint8_t>(bytes, index);
    case DataType::kInt16:
      return At<int16_t>(bytes, index);
    case DataType::kUInt16:
      return At<uint16_t>(bytes, index);
    case DataType::kInt32:
      return At<int32_t>(bytes, index);
    case DataType::kUInt32:
      return At<uint32_t>(bytes, index);
    case DataType::kInt64:
      return At<int64_t>(bytes, index);
    default: {
      const uint64_t value = At<uint64_t>(bytes, index);
      return value >> 63 ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(value);
    }
  }
}

constexpr int64_t kElements = 37;

// Returns random elements of `dtype`. Elements of float64 are such that float32 can hold them.
std::string Elements(DataType dtype, RandomWire& random) {
  if (dtype == DataType::kFloat64) {
    std::vector<double> values(kElements);
    for (double& value : values) value = random.Below(1 << 30) / 1e6 - 500;
    return BytesOf(values);
  }
  std::string bytes(static_cast<size_t>(kElements * ByteWidth(dtype)), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.Below(256));
  return bytes;
}

struct Range {
  int64_t first;
  int64_t count;
};

Range SomeRange(RandomWire& random) {
  const int first = random.Below(kElements + 1);
  return {first, random.Below(static_cast<int>(kElements) - first + 1)};
}

// Returns `bytes` as a payload that begins at any byte of its slices, which are cut anywhere.
Payload Scattered(const std::string& bytes, RandomWire& random) {
  const std::string before(static_cast<size_t>(random.Below(9)), '#');
  const std::string message = before + bytes + "#";
  const int size = random.Below(24);
  return Payload(
      Dump(size == 0 ? random.Slices(message) : InSlicesOf(message, static_cast<size_t>(size))),
      static_cast<int64_t>(before.size()), static_cast<int64_t>(bytes.size()));
}

class PayloadFloatsTest : public ::testing::TestWithParam<DataType> {};
class PayloadIntegersTest : public ::testing::TestWithParam<DataType> {};

const auto kNameOfType = [](const auto& test) { return std::string(Name(test.param)); };

INSTANTIATE_TEST_SUITE_P(Types, PayloadFloatsTest,
                         ::testing::Values(DataType::kFloat32, DataType::kFloat16,
                                           DataType::kBFloat16, DataType::kFloat64),
                         kNameOfType);
INSTANTIATE_TEST_SUITE_P(Types, PayloadIntegersTest,
                         ::testing::Values(DataType::kBool, DataType::kInt8, DataType::kUInt8,
                                           DataType::kInt16, DataType::kUInt16, DataType::kInt32,
                                           DataType::kUInt32, DataType::kInt64, DataType::kUInt64),
                         kNameOfType);

TEST_P(PayloadFloatsTest, ReadsAnyElementsOutOfAnySlices) {
  RandomWire random(1);
  for (int i = 0; i < 2000; ++i) {
    const std::string bytes = Elements(GetParam(), random);
    const Payload payload = Scattered(bytes, random);
    const Range range = SomeRange(random);
    std::vector<float> read(static_cast<size_t>(range.count));
    payload.ReadFloats(GetParam(), range.first, range.count, read.data());
    for (int64_t j = 0; j < range.count; ++j) {
      const float expected = FloatAt(GetParam(), bytes, range.first + j);
      const float actual = read[static_cast<size_t>(j)];
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(actual));
      } else {
        ASSERT_EQ(std::memcmp(&actual, &expected, sizeof(float)), 0) << actual << " " << expected;
      }
    }
  }
}

TEST_P(PayloadIntegersTest, ReadsAnyElementsOutOfAnySlices) {
  RandomWire random(2);
  for (int i = 0; i < 2000; ++i) {
    const std::string bytes = Elements(GetParam(), random);
    const Payload payload = Scattered(bytes, random);
    const Range range = SomeRange(random);
    std::vector<int64_t> read(static_cast<size_t>(range.count));
    payload.ReadIntegers(GetParam(), range.first, range.count, read.data());
    std::vector<int64_t> expected;
    for (int64_t j = 0; j < range.count; ++j) {
      expected.push_back(IntegerAt(GetParam(), bytes, range.first + j));
    }
    ASSERT_THAT(read, ElementsAreArray(expected));
  }
}

TEST(PayloadConvertTest, IntegersKeepTheirExtremes) {
  const auto read = [](DataType dtype, const std::string& bytes) {
    const Payload payload(Dump(InSlicesOf(bytes, 3)), 0, static_cast<int64_t>(bytes.size()));
    std::vector<int64_t> values(bytes.size() / static_cast<size_t>(ByteWidth(dtype)));
    payload.ReadIntegers(dtype, 0, static_cast<int64_t>(values.size()), values.data());
    return values;
  };
  constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
  constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(read(DataType::kBool, {0, 1, 2, '\xff'}), ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(read(DataType::kInt8, BytesOf<int8_t>({-128, 127})), ElementsAre(-128, 127));
  EXPECT_THAT(read(DataType::kInt32, BytesOf<int32_t>({-1})), ElementsAre(-1));
  EXPECT_THAT(read(DataType::kUInt32, BytesOf<uint32_t>({0xffffffff})), ElementsAre(0xffffffff));
  EXPECT_THAT(read(DataType::kInt64, BytesOf<int64_t>({kLowest, kHighest})),
              ElementsAre(kLowest, kHighest));
  EXPECT_THAT(read(DataType::kUInt64, BytesOf<uint64_t>({uint64_t{1} << 63, ~uint64_t{0}, 5})),
              ElementsAre(kHighest, kHighest, 5));
}

}  // namespace payload_convert_test
}  // namespace attendant::server
