#include "engine/kernels/convert.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/random_values.h"

namespace attendant {
namespace convert_test {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The layout of a 16-bit float type.
struct Format {
  DataType dtype;
  int mantissa_bits;
  int bias;
};
constexpr Format kFloat16{DataType::kFloat16, 10, 15};
constexpr Format kBFloat16{DataType::kBFloat16, 7, 127};

// Returns the value of `bits`, from the definition of the format.
double ValueOf(const Format& format, uint16_t bits) {
  const int fraction = bits & ((1 << format.mantissa_bits) - 1);
  const int exponent = (bits & 0x7FFF) >> format.mantissa_bits;
  const int largest = 0x7FFF >> format.mantissa_bits;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == largest) return fraction != 0 ? std::nan("") : sign * kInfinity;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - format.bias - format.mantissa_bits);
  return sign * std::ldexp(fraction + (1 << format.mantissa_bits),
                           exponent - format.bias - format.mantissa_bits);
}

std::vector<float> Widen(DataType dtype, const std::vector<uint16_t>& halves) {
  std::vector<float> floats(halves.size());
  ToFloat(dtype, halves.data(), static_cast<int64_t>(halves.size()), floats.data());
  return floats;
}

std::vector<uint16_t> Narrow(DataType dtype, const std::vector<float>& floats) {
  std::vector<uint16_t> halves(floats.size());
  FromFloat(floats.data(), static_cast<int64_t>(floats.size()), dtype, halves.data());
  return halves;
}

class HalfTest : public testing::TestWithParam<Format> {
 protected:
  static std::vector<uint16_t> AllHalves() {
    std::vector<uint16_t> halves(65536);
    for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
    return halves;
  }
};

TEST_P(HalfTest, WidensEveryValueExactlyAndBack) {
  const std::vector<uint16_t> halves = AllHalves();
  const std::vector<float> floats = Widen(GetParam().dtype, halves);
  const std::vector<uint16_t> back = Narrow(GetParam().dtype, floats);
  for (size_t i = 0; i < halves.size(); ++i) {
    const double expected = ValueOf(GetParam(), halves[i]);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(floats[i])) << i;
      ASSERT_TRUE(std::isnan(ValueOf(GetParam(), back[i]))) << i;
      continue;
    }
    ASSERT_EQ(static_cast<double>(floats[i]), expected) << i;
    ASSERT_EQ(std::signbit(floats[i]), std::signbit(expected)) << i;
    ASSERT_EQ(back[i], halves[i]) << i;
  }
}

// Checks the values between two neighbours: those just below the middle round down, those just
// above round up, and the middle rounds to the even neighbour.
TEST_P(HalfTest, RoundsToNearestEven) {
  const int largest = 0x7FFF >> GetParam().mantissa_bits << GetParam().mantissa_bits;
  for (int bits = 0; bits + 1 < largest; ++bits) {
    const uint16_t lower = static_cast<uint16_t>(bits), upper = static_cast<uint16_t>(bits + 1);
    const float middle =
        static_cast<float>((ValueOf(GetParam(), lower) + ValueOf(GetParam(), upper)) / 2);
    const std::vector<float> floats = {std::nextafter(middle, 0.0f), middle,
                                       std::nextafter(middle, kInfinity), -middle};
    const uint16_t even = bits % 2 == 0 ? lower : upper;
    ASSERT_THAT(Narrow(GetParam().dtype, floats),
                testing::ElementsAre(lower, even, upper, static_cast<uint16_t>(even | 0x8000)))
        << bits;
  }
}

TEST_P(HalfTest, KeepsInfinitiesAndNanAndOverflowsToInfinity) {
  const uint16_t infinity =
      static_cast<uint16_t>(0x7FFF >> GetParam().mantissa_bits << GetParam().mantissa_bits);
  const float greatest = std::numeric_limits<float>::max();
  EXPECT_THAT(Narrow(GetParam().dtype, {kInfinity, -kInfinity, greatest, -greatest}),
              testing::ElementsAre(infinity, infinity | 0x8000, infinity, infinity | 0x8000));
  for (const uint32_t bits : {0x7FC00000u, 0x7F800001u, 0xFFFFFFFFu, 0x7FFFFFFFu}) {
    float nan;
    std::memcpy(&nan, &bits, sizeof(nan));
    EXPECT_TRUE(std::isnan(ValueOf(GetParam(), Narrow(GetParam().dtype, {nan})[0]))) << bits;
  }
}

TEST_P(HalfTest, TouchesNothingBeyondItsOperandsAtAnyAlignment) {
  for (int64_t count = 0; count <= 70; ++count) {
    for (const size_t slack : {0, 1}) {
      GuardedBytes halves(count * 2 + slack), floats(count * 4 + slack);
      ToFloat(GetParam().dtype, halves.data() + slack, count,
              reinterpret_cast<float*>(floats.data() + slack));
      FromFloat(reinterpret_cast<float*>(floats.data() + slack), count, GetParam().dtype,
                halves.data() + slack);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, HalfTest, testing::Values(kFloat16, kBFloat16),
                         [](const auto& test) { return std::string(Name(test.param.dtype)); });

TEST(ConvertTest, CopiesFloat32) {
  const std::vector<float> values = RandomValues(1500, 1);
  std::vector<float> there(values.size()), back(values.size());
  FromFloat(values.data(), 1500, DataType::kFloat32, there.data());
  ToFloat(DataType::kFloat32, there.data(), 1500, back.data());
  EXPECT_EQ(back, values);
}

TEST(ConvertTest, RoundsFloat64ToNearestEven) {
  const double step = std::ldexp(1.0, -24);
  const std::vector<double> values = {1.0 + step, 1.0 + 3 * step, -0.1, 1e300, 1.0 + step * 1.0001};
  std::vector<float> floats(values.size());
  ToFloat(DataType::kFloat64, values.data(), static_cast<int64_t>(values.size()), floats.data());
  EXPECT_THAT(floats, testing::ElementsAre(1.0f, 1.0f + 4 * static_cast<float>(step), -0.1f,
                                           kInfinity, 1.0f + 2 * static_cast<float>(step)));
}

TEST(AllFiniteTest, FindsOneNonFiniteAnywhere) {
  for (int64_t count = 0; count <= 80; ++count) {
    GuardedBuffer<float> values(count);
    EXPECT_TRUE(AllFinite(values.data(), count));
    for (int64_t i = 0; i < count; ++i) {
      for (const float poison : {kInfinity, -kInfinity, std::nanf("")}) {
        values[i] = poison;
        EXPECT_FALSE(AllFinite(values.data(), count)) << i;
      }
      values[i] = i % 2 == 0 ? std::numeric_limits<float>::max() : -1e-42f;
    }
    EXPECT_TRUE(AllFinite(values.data(), count));
  }
}

}  // namespace convert_test
}  // namespace attendant
