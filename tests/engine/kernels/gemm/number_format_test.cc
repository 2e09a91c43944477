#include "engine/kernels/gemm/number_format.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "engine/kernels/convert.h"
#include "gmock/gmock.h"
#include "tests/reference/reference.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/random_values.h"

namespace attendant {
namespace number_format_test {

using testing::Each;
using testing::ElementsAre;

constexpr ComputeMode kBf16{ComputeType::kBf16, false}, kBf16Emulated{ComputeType::kBf16, true};
constexpr ComputeMode kBf16x3{ComputeType::kBf16x3, false},
    kBf16x3Emulated{ComputeType::kBf16x3, true};
constexpr ComputeMode kInt8{ComputeType::kInt8, false}, kInt8Emulated{ComputeType::kInt8, true};

struct Quantized {
  std::vector<int> elements;
  float scale;
};

// Converts to both forms of int8, which must agree.
Quantized Quantize(const std::vector<float>& row) {
  const int64_t count = static_cast<int64_t>(row.size());
  GuardedBuffer<int8_t> integers(count);
  std::vector<float> floats(count);
  std::vector<float> scratch(count);
  const float scale = ConvertInput(kInt8, row.data(), count, scratch.data(), {integers.data()});
  const float emulated =
      ConvertInput(kInt8Emulated, row.data(), count, scratch.data(), {floats.data()});
  EXPECT_EQ(std::memcmp(&scale, &emulated, sizeof(scale)), 0);
  Quantized quantized{{integers.span().begin(), integers.span().end()}, scale};
  EXPECT_EQ(quantized.elements, std::vector<int>(floats.begin(), floats.end()));
  return quantized;
}

struct Split {
  std::vector<float> high, low;
};

// Makes both forms of the two parts, which must agree.
Split SplitInTwo(const std::vector<float>& row) {
  const int64_t count = static_cast<int64_t>(row.size());
  GuardedBuffer<uint16_t> high(count), low(count);
  const auto distance = [](const auto* from, const auto* to) {
    return reinterpret_cast<const char*>(to) - reinterpret_cast<const char*>(from);
  };
  EXPECT_EQ(ConvertInput(kBf16x3, row.data(), count, nullptr,
                         {high.data(), distance(high.data(), low.data())}),
            1.0f);
  Split split{std::vector<float>(count), std::vector<float>(count)};
  ToFloat(DataType::kBFloat16, high.data(), count, split.high.data());
  ToFloat(DataType::kBFloat16, low.data(), count, split.low.data());
  GuardedBuffer<float> emulated_high(count), emulated_low(count);
  EXPECT_EQ(
      ConvertWeight(kBf16x3Emulated, row.data(), count, nullptr,
                    {emulated_high.data(), distance(emulated_high.data(), emulated_low.data())}),
      1.0f);
  const size_t bytes = row.size() * sizeof(float);
  EXPECT_EQ(count > 0 ? std::memcmp(emulated_high.data(), split.high.data(), bytes) : 0, 0);
  EXPECT_EQ(count > 0 ? std::memcmp(emulated_low.data(), split.low.data(), bytes) : 0, 0);
  return split;
}

TEST(NumberFormatTest, HasTheWidthOfItsType) {
  for (const ComputeType type : kComputeTypes) {
    EXPECT_EQ(InputParts({type, true}), type == ComputeType::kBf16x3 ? 2 : 1);
  }
  EXPECT_EQ(InputElementBytes(kBf16x3), 4);
  EXPECT_EQ(InputElementBytes(kBf16x3Emulated), 8);
  EXPECT_EQ(InputElementBytes({}), 4);
  EXPECT_EQ(InputElementBytes(kBf16), 2);
  EXPECT_EQ(InputElementBytes(kInt8), 1);
  EXPECT_EQ(InputElementBytes(kBf16Emulated), 4);
  EXPECT_EQ(InputElementBytes(kInt8Emulated), 4);
}

TEST(NumberFormatTest, Bf16IsRoundedAsOnTheWire) {
  for (int64_t count = 0; count < 70; ++count) {
    std::vector<float> row = RandomValues(count, 1, 1000.0f);
    if (count > 3) row[2] = INFINITY;
    if (count > 3) row[3] = std::nanf("");
    if (count > 5) row[4] = 0x1.01p0f;  // half-way between two bfloat16, of which the lower is even
    if (count > 5) row[5] = 0x1.03p0f;  // half-way, and the upper is even
    std::vector<uint16_t> expected(count);
    FromFloat(row.data(), count, DataType::kBFloat16, expected.data());
    GuardedBuffer<uint16_t> rounded(count);
    EXPECT_EQ(ConvertInput(kBf16, row.data(), count, nullptr, {rounded.data()}), 1.0f);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), rounded.data()));
    GuardedBuffer<float> emulated(count), widened(count);
    EXPECT_EQ(ConvertWeight(kBf16Emulated, row.data(), count, nullptr, {emulated.data()}), 1.0f);
    ToFloat(DataType::kBFloat16, expected.data(), count, widened.data());
    EXPECT_EQ(count > 0 ? std::memcmp(emulated.data(), widened.data(), count * 4) : 0, 0);
  }
}

TEST(NumberFormatTest, Bf16x3IsTwoPartsAtEveryLength) {
  for (int64_t count = 0; count < 70; ++count) {
    const std::vector<float> row = RandomValues(count, static_cast<uint32_t>(count), 1000.0f);
    const auto [high, low] = SplitInTwo(row);
    for (int64_t i = 0; i < count; ++i) {
      EXPECT_EQ(high[i], reference::RoundToBf16(row[i]));
      EXPECT_EQ(low[i], reference::RoundToBf16(row[i] - high[i]));
      EXPECT_LE(std::abs(high[i] + double{low[i]} - row[i]), 0x1p-16 * std::abs(row[i]));
    }
  }
}

TEST(NumberFormatTest, Bf16x3HasNoLowPartForBf16Values) {
  const auto [high, low] = SplitInTwo({1.0f, -1.5f, 0.0f, -0.0f, 0x1.fep100f});
  EXPECT_THAT(high, ElementsAre(1.0f, -1.5f, 0.0f, -0.0f, 0x1.fep100f));
  EXPECT_THAT(low, Each(0.0f));
}

// The middle between two bfloat16 numbers rounds to the even one, and so does a tie of the low
// part.
TEST(NumberFormatTest, Bf16x3RoundsToNearestEven) {
  const auto [high, low] = SplitInTwo({0x1.01p0f, 0x1.03p0f, 0x1.00404p0f, 0x1.0040cp0f});
  EXPECT_THAT(high, ElementsAre(1.0f, 0x1.04p0f, 1.0f, 1.0f));
  EXPECT_THAT(low, ElementsAre(0x1p-8f, -0x1p-8f, 0x1.00p-10f, 0x1.04p-10f));
}

// Values that would round to infinity become the largest finite number, and the low part holds the
// rest.
TEST(NumberFormatTest, Bf16x3KeepsTheRangeOfFloat32) {
  constexpr float kLargest = std::numeric_limits<float>::max(), kLargestBf16 = 0x1.fep127f;
  const auto [high, low] =
      SplitInTwo({kLargest, -kLargest, 0x1.fffp127f, INFINITY, -INFINITY, kLargestBf16});
  EXPECT_THAT(high, ElementsAre(kLargestBf16, -kLargestBf16, kLargestBf16, kLargestBf16,
                                -kLargestBf16, kLargestBf16));
  EXPECT_THAT(low, ElementsAre(0x1p120f, -0x1p120f, 0x1.fp119f, INFINITY, -INFINITY, 0.0f));
  const Split nan = SplitInTwo({std::nanf(""), -std::nanf("")});
  for (const float part : {nan.high[0], nan.high[1], nan.low[0], nan.low[1]}) {
    EXPECT_TRUE(std::isnan(part));
  }
}

TEST(NumberFormatTest, Int8ReachesFromMinus127To127) {
  const Quantized quantized = Quantize({-2.54f, 2.54f, 0.0f, 1.27f, -0.02f, 0.001f});
  EXPECT_THAT(quantized.elements, ElementsAre(-127, 127, 0, 64, -1, 0));
  EXPECT_FLOAT_EQ(quantized.scale, 8 * 0.02f);
}

TEST(NumberFormatTest, Int8RoundsToNearestEven) {
  EXPECT_THAT(Quantize({127.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 3.49f}).elements,
              ElementsAre(127, 0, 2, 2, 0, -2, 3));
}

TEST(NumberFormatTest, Int8MatchesTheReferenceAtEveryLength) {
  for (int64_t count = 1; count < 400; count += count < 140 ? 1 : 13) {
    const std::vector<float> row = RandomValues(count, static_cast<uint32_t>(count), 3.0f);
    const Quantized quantized = Quantize(row);
    const reference::Matrix expected =
        reference::InputOperand(ComputeType::kInt8, ViewOf(row, 1, count));
    std::vector<float> scratch(count), weight(count);
    const float scale =
        ConvertWeight(kInt8Emulated, row.data(), count, scratch.data(), {weight.data()});
    const reference::Matrix expected_weight =
        reference::WeightOperand(ComputeType::kInt8, ViewOf(row, 1, count));
    for (int64_t i = 0; i < count; ++i) {
      EXPECT_EQ(quantized.elements[i] * static_cast<double>(quantized.scale), expected(0, i));
      EXPECT_EQ(weight[i] * static_cast<double>(scale), expected_weight(0, i));
    }
  }
}

// H is 128 times its own inverse, and its first row and its first column are all ones.
TEST(NumberFormatTest, Int8RotatesBlocksOf128) {
  std::vector<float> row(300, 0.0f);
  row[0] = 3.0f;
  Quantized quantized = Quantize(row);
  EXPECT_THAT(absl::MakeSpan(quantized.elements).first(128), Each(127));
  EXPECT_THAT(absl::MakeSpan(quantized.elements).subspan(128), Each(0));
  row.assign(300, 0.0f);
  std::fill_n(row.begin() + 128, 128, 1.0f);
  row[299] = 2.0f;
  quantized = Quantize(row);
  EXPECT_EQ(quantized.elements[128], 127);
  EXPECT_EQ(quantized.elements[129], 0);
  EXPECT_EQ(quantized.elements[299], 16);  // 2 x 8 of 128 x 127 steps
}

TEST(NumberFormatTest, Int8TakesVerySmallRowsAsZero) {
  for (const float small : {0.0f, -0.0f, 1e-38f, 1e-42f, -5e-32f}) {
    const Quantized quantized = Quantize(std::vector<float>(19, small));
    EXPECT_EQ(quantized.scale, 0.0f);
    EXPECT_THAT(quantized.elements, Each(0));
  }
  EXPECT_EQ(Quantize({2e-31f, 0.0f}).elements[0], 127);
  EXPECT_EQ(Quantize({4e37f, 0.0f}).elements[0], 127);
}

TEST(NumberFormatTest, Int8MarksRowsThatAreNotFinite) {
  for (const float value : {std::nanf(""), INFINITY, -INFINITY}) {
    for (const size_t place : {0, 7, 16, 18}) {
      std::vector<float> row = RandomValues(19, 1);
      row[place] = value;
      const Quantized quantized = Quantize(row);
      EXPECT_TRUE(std::isnan(quantized.scale));
      EXPECT_THAT(quantized.elements, Each(0));
    }
  }
}

// As the blocks of a product are rounded, which lie in rows that are longer than the block.
TEST(NumberFormatTest, RowsAreConvertedLikeEachRowAlone) {
  constexpr int64_t kRows = 5, kStride = 200;
  const std::vector<float> x = RandomValues(kRows * kStride, 7, 3.0f);
  std::vector<float> scratch(kStride);
  for (const ComputeMode& mode :
       {kBf16, kBf16Emulated, kBf16x3, kBf16x3Emulated, kInt8, kInt8Emulated}) {
    for (const int64_t cols : {0, 1, 31, 32, 33, 128, 192}) {
      const int64_t part = cols * InputElementBytes(mode) / InputParts(mode);
      const int64_t row_bytes = InputParts(mode) * part + 3 * 4;
      std::string rows(kRows * row_bytes, 'x'), expected = rows;
      std::vector<float> scales(kRows, 1.0f), expected_scales = scales;
      ConvertInputRows(mode, {x.data(), kRows, cols, kStride}, scratch.data(),
                       {rows.data(), part, row_bytes}, scales.data());
      for (int64_t r = 0; r < kRows; ++r) {
        expected_scales[r] = ConvertInput(mode, &x[r * kStride], cols, scratch.data(),
                                          {&expected[r * row_bytes], part});
      }
      EXPECT_EQ(rows, expected) << cols;
      EXPECT_EQ(scales, expected_scales) << cols;
    }
  }
}

}  // namespace number_format_test
}  // namespace attendant
