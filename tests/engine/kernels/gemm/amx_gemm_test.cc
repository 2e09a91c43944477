#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "engine/kernels/gemm/block_gemm.h"
#include "engine/kernels/isa.h"
#include "gmock/gmock.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/random_values.h"

namespace attendant {
namespace amx_gemm_test {

using testing::ElementsAreArray;

TEST(TileWeightTest, TakesWholeStepsOf64Bytes) {
  EXPECT_TRUE(FillsAmxTiles(GemmElement::kBFloat16Both, 32));
  EXPECT_TRUE(FillsAmxTiles(GemmElement::kBFloat16Both, 768));
  EXPECT_FALSE(FillsAmxTiles(GemmElement::kBFloat16Both, 16));
  EXPECT_FALSE(FillsAmxTiles(GemmElement::kBFloat16Both, 312));
  EXPECT_TRUE(FillsAmxTiles(GemmElement::kInt8, 64));
  EXPECT_FALSE(FillsAmxTiles(GemmElement::kInt8, 32));
}

TEST(TileWeightTest, IsPaddedToWholePairsOfTiles) {
  EXPECT_EQ(AmxWeightBytes(GemmElement::kBFloat16Both, 768, 192), 768 * 192 * 2);
  EXPECT_EQ(AmxWeightBytes(GemmElement::kBFloat16Both, 32, 1), 2048);
  EXPECT_EQ(AmxWeightBytes(GemmElement::kInt8, 64, 33), 4096);
}

// A panel [32 columns, 64 elements] of 0, 1, 2, …: each row of its first tile has two elements of
// the depth for each of 16 columns.
TEST(TileWeightTest, LiesInTilesOfPairs) {
  constexpr int64_t kIn = 64, kWidth = 32;
  std::vector<uint16_t> weight(kWidth * kIn), packed(weight.size());
  std::iota(weight.begin(), weight.end(), uint16_t{0});
  PackAmxWeight(GemmElement::kBFloat16Both,
                {reinterpret_cast<const char*>(weight.data()), 2 * kIn, kIn, kWidth},
                reinterpret_cast<char*>(packed.data()));
  for (int64_t pair = 0; pair < 16; ++pair) {
    for (int64_t column = 0; column < 16; ++column) {
      const uint16_t* found = &packed[pair * 32 + column * 2];
      EXPECT_EQ(found[0], column * kIn + 2 * pair);
      EXPECT_EQ(found[1], column * kIn + 2 * pair + 1);
    }
  }
  std::sort(packed.begin(), packed.end());
  EXPECT_THAT(packed, ElementsAreArray(weight));
}

// The types that this CPU can compute.
std::vector<GemmElement> Elements() {
  if (!HasAmxUnits()) return {};
  return {GemmElement::kBFloat16Both, GemmElement::kInt8};
}

std::string NameOfElement(const testing::TestParamInfo<GemmElement>& info) {
  return info.param == GemmElement::kBFloat16Both ? "bf16" : "int8";
}

struct Size {
  int64_t in;
  int64_t width;
  int64_t rows;
};

// Elements are small integers, so that every sum is exact, in any order.
class AmxGemmTest : public testing::TestWithParam<GemmElement> {
 protected:
  bool is_bf16() const { return GetParam() == GemmElement::kBFloat16Both; }
  int64_t element_bytes() const { return is_bf16() ? 2 : 1; }

  // Rounds to integers in [-8, 8].
  static std::vector<float> Integers(int64_t count, uint32_t seed) {
    std::vector<float> values = RandomValues(count, seed);
    for (float& value : values) value = std::clamp(std::round(value * 4), -8.0f, 8.0f);
    return values;
  }

  void ToElements(const std::vector<float>& values, char* elements) const {
    for (size_t i = 0; i < values.size(); ++i) {
      const auto integer = static_cast<int8_t>(values[i]);
      is_bf16() ? std::memcpy(elements + 2 * i, reinterpret_cast<const char*>(&values[i]) + 2, 2)
                : std::memcpy(elements + i, &integer, 1);
    }
  }

  struct Extras {
    bool bias = false;
    bool add_to_y = false;
  };

  // Returns y, which was filled with 7 before, as floats.
  std::vector<float> Multiply(const Size& size, const std::vector<float>& x,
                              const std::vector<float>& weight, const Extras& extras) {
    const int64_t row_bytes = size.in * element_bytes();
    const GuardedBuffer<char> x_elements(size.rows * row_bytes);
    ToElements(x, x_elements.data());
    std::vector<char> weight_elements(size.width * row_bytes);
    ToElements(weight, weight_elements.data());
    const GuardedBuffer<char> packed(AmxWeightBytes(GetParam(), size.in, size.width));
    PackAmxWeight(GetParam(), {weight_elements.data(), row_bytes, size.in, size.width},
                  packed.data());
    const GuardedBuffer<float> bias(size.width), y(size.rows * size.width);
    std::iota(bias.data(), bias.data() + size.width, 1.0f);
    std::fill_n(y.data(), y.size(), 7.0f);
    RunAmxGemm({.element = GetParam(),
                .in = size.in,
                .width = size.width,
                .rows = size.rows,
                .x = x_elements.data(),
                .x_row_bytes = row_bytes,
                .weight = packed.data(),
                .bias = extras.bias ? bias.data() : nullptr,
                .add_to_y = extras.add_to_y,
                .y = y.data(),
                .y_stride = size.width});
    std::vector<float> numbers(y.data(), y.data() + y.size());
    if (is_bf16()) return numbers;
    for (float& number : numbers) {
      int32_t integer;
      std::memcpy(&integer, &number, sizeof(integer));
      number = static_cast<float>(integer);
    }
    return numbers;
  }

  void ExpectExact(const Size& size, const Extras& extras) {
    const std::vector<float> x = Integers(size.rows * size.in, 1);
    const std::vector<float> weight = Integers(size.width * size.in, 2);
    std::vector<float> expected(size.rows * size.width);
    for (int64_t r = 0; r < size.rows; ++r) {
      for (int64_t c = 0; c < size.width; ++c) {
        const float* row = &x[r * size.in];
        expected[r * size.width + c] =
            std::inner_product(row, row + size.in, &weight[c * size.in], 0.0f) +
            (extras.bias ? 1.0f + static_cast<float>(c) : 0.0f) + (extras.add_to_y ? 7.0f : 0.0f);
      }
    }
    EXPECT_EQ(Multiply(size, x, weight, extras), expected)
        << size.in << " to " << size.width << ", " << size.rows << " rows";
  }
};

// One step of depth and several blocks of it, whole and cut; parts of a vector, of a tile and of a
// group of columns; groups of one and of two tiles of rows.
TEST_P(AmxGemmTest, IsExactInEverySize) {
  for (const int64_t in : {64, 128, 448, 512, 576, 1088}) {
    for (const int64_t width : {1, 15, 16, 17, 32, 50, 192}) {
      ExpectExact({in, width, 16}, {});
      ExpectExact({in, width, 48}, {});
    }
  }
  ExpectExact({128, 64, 256}, {});
}

TEST_P(AmxGemmTest, AddsBiasAndWhatIsThere) {
  if (!is_bf16()) return ExpectExact({64, 32, 16}, {});  // int8 has neither
  for (const int64_t in : {32, 64, 320, 768}) {
    ExpectExact({in, 50, 48}, {.bias = true});
    ExpectExact({in, 50, 48}, {.add_to_y = true});
    ExpectExact({in, 64, 80}, {.bias = true, .add_to_y = true});
  }
}

TEST_P(AmxGemmTest, GivesARowTheSameBitsInEveryPlace) {
  constexpr Size kSize{768, 80, 96};
  std::vector<float> x = RandomValues(kSize.rows * kSize.in, 3);
  const std::vector<float> weight = RandomValues(kSize.width * kSize.in, 4);
  for (int64_t r = 1; r < kSize.rows; ++r) std::copy_n(x.begin(), kSize.in, &x[r * kSize.in]);
  const std::vector<float> y = Multiply(kSize, x, weight, {});
  for (int64_t r = 1; r < kSize.rows; ++r) {
    EXPECT_EQ(std::memcmp(&y[r * kSize.width], y.data(), kSize.width * sizeof(float)), 0) << r;
  }
}

TEST_P(AmxGemmTest, KeepsNanInItsRow) {
  if (!is_bf16()) return;
  constexpr Size kSize{64, 48, 48};
  std::vector<float> x = Integers(kSize.rows * kSize.in, 5);
  const std::vector<float> weight = Integers(kSize.width * kSize.in, 6);
  const std::vector<float> clean = Multiply(kSize, x, weight, {});
  x[20 * kSize.in + 5] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> y = Multiply(kSize, x, weight, {});
  for (int64_t i = 0; i < kSize.rows * kSize.width; ++i) {
    const bool spoilt = i / kSize.width == 20;
    EXPECT_EQ(std::isnan(y[i]), spoilt) << i;
    EXPECT_TRUE(spoilt || y[i] == clean[i]) << i;
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AmxGemmTest);
INSTANTIATE_TEST_SUITE_P(OfThisCpu, AmxGemmTest, testing::ValuesIn(Elements()), NameOfElement);

}  // namespace amx_gemm_test
}  // namespace attendant
