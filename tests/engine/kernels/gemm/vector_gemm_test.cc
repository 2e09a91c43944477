#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/base/casts.h"
#include "engine/base/data_type.h"
#include "engine/kernels/convert.h"
#include "engine/kernels/gemm/block_gemm.h"
#include "engine/kernels/isa.h"
#include "gmock/gmock.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/random_values.h"

namespace attendant {
namespace vector_gemm_test {

struct Size {
  int64_t in;
  int64_t width;
  int64_t rows;
  int64_t sum_block = kVectorSumBlock;
};

void PrintTo(const Size& size, std::ostream* out) {
  *out << size.in << " to " << size.width << ", " << size.rows << " rows, sums of "
       << size.sum_block;
}

struct Extras {
  bool bias = false;
  bool add_to_y = false;
};

constexpr float kBefore = 7;  // in y

float BiasOf(int64_t column) { return 0.3f * static_cast<float>(column) - 1; }

DataType TypeOf(GemmElement element) {
  if (element == GemmElement::kFloat32) return DataType::kFloat32;
  return element == GemmElement::kFloat16 ? DataType::kFloat16 : DataType::kBFloat16;
}

std::vector<char> Narrowed(const std::vector<float>& values, DataType type) {
  std::vector<char> narrow(values.size() * ByteWidth(type));
  FromFloat(values.data(), static_cast<int64_t>(values.size()), type, narrow.data());
  return narrow;
}

// Returns `rounded`, which is `exact` rounded to nearest even, or its neighbor on the other side of
// `exact`, whichever is odd in the last bit. An exact number stays as it is.
template <class T, class Bits>
T ToOdd(T rounded, double remainder) {
  if (remainder == 0 || (absl::bit_cast<Bits>(rounded) & 1) != 0) return rounded;
  return std::nextafter(rounded, static_cast<T>(std::copysign(INFINITY, remainder)));
}

// Returns a + b, rounded to odd.
float AddToOdd(double a, double b) {
  const double sum = a + b, of_b = sum - a;
  const double odd = ToOdd<double, uint64_t>(sum, (a - (sum - of_b)) + (b - of_b));
  const float rounded = static_cast<float>(odd);
  return ToOdd<float, uint32_t>(rounded, odd - rounded);
}

// Products of float32, or of bfloat16, by weights of that type.
class VectorGemmTest : public testing::TestWithParam<GemmElement> {
 protected:
  // Rounds as packing does.
  static std::vector<float> Rounded(std::vector<float> values) {
    const std::vector<char> narrow = Narrowed(values, TypeOf(GetParam()));
    ToFloat(TypeOf(GetParam()), narrow.data(), static_cast<int64_t>(values.size()), values.data());
    return values;
  }

  static bool RoundsX() { return GetParam() == GemmElement::kBFloat16Both; }

  // Returns the sum of `count` products in the documented order.
  static float Sum(const float* row, const float* column, int64_t count) {
    float sum = 0;
    for (int64_t k = 0; k < count && !RoundsX(); ++k) sum = std::fma(row[k], column[k], sum);
    for (int64_t k = 0; k < count && RoundsX(); k += 2) {
      const double second = k + 1 < count ? double{row[k + 1]} * column[k + 1] : 0;
      sum = AddToOdd(sum, AddToOdd(double{row[k]} * column[k], second));
    }
    return sum;
  }

  static std::vector<float> Multiply(const Size& size, const std::vector<float>& x,
                                     const std::vector<float>& weight, const Extras& extras = {}) {
    const DataType type = RoundsX() ? DataType::kBFloat16 : DataType::kFloat32;
    const int64_t row_bytes = size.in * ByteWidth(type);
    const std::vector<char> narrow_x = Narrowed(x, type), narrow_weight = Narrowed(weight, type);
    const GuardedBuffer<char> x_rows(size.rows * row_bytes);
    std::copy(narrow_x.begin(), narrow_x.end(), x_rows.data());
    const GuardedBuffer<char> packed(VectorWeightBytes(GetParam(), size.in, size.width));
    PackVectorWeight(GetParam(), {narrow_weight.data(), row_bytes, size.in, size.width},
                     packed.data());
    const GuardedBuffer<float> bias(size.width), y(size.rows * size.width);
    for (int64_t c = 0; c < size.width; ++c) bias[c] = BiasOf(c);
    std::fill_n(y.data(), y.size(), kBefore);
    RunVectorGemm({.element = GetParam(),
                   .in = size.in,
                   .width = size.width,
                   .rows = size.rows,
                   .x = x_rows.data(),
                   .x_row_bytes = row_bytes,
                   .weight = packed.data(),
                   .bias = extras.bias ? bias.data() : nullptr,
                   .add_to_y = extras.add_to_y,
                   .sum_block = size.sum_block,
                   .y = y.data(),
                   .y_stride = size.width});
    return {y.data(), y.data() + y.size()};
  }

  // Checks the bits against sums in the documented order, and those against float64.
  static void Check(const Size& size, const Extras& extras = {}) {
    std::vector<float> x = RandomValues(size.rows * size.in, 1);
    if (RoundsX()) x = Rounded(x);
    const std::vector<float> weight = RandomValues(size.width * size.in, 2);
    const std::vector<float> rounded = Rounded(weight);
    const std::vector<float> found = Multiply(size, x, weight, extras);
    for (int64_t r = 0; r < size.rows; ++r) {
      for (int64_t c = 0; c < size.width; ++c) {
        const float* const row = &x[r * size.in];
        const float* const column = &rounded[c * size.in];
        float y = extras.add_to_y ? kBefore : 0;
        double exact = y;
        for (int64_t begin = 0; begin < size.in; begin += size.sum_block) {
          const int64_t end = std::min(size.in, begin + size.sum_block);
          for (int64_t k = begin; k < end; ++k) exact += double{row[k]} * column[k];
          const float sum = Sum(row + begin, column + begin, end - begin);
          y = begin == 0 && !extras.add_to_y ? sum : y + sum;
        }
        if (extras.bias) {
          y += BiasOf(c);
          exact += BiasOf(c);
        }
        ASSERT_EQ(found[r * size.width + c], y)
            << testing::PrintToString(size) << ": " << r << ", " << c;
        ASSERT_NEAR(y, exact, 3e-6 * std::sqrt(size.in) + 2e-6);
      }
    }
  }
};

// Parts of a vector and of a stripe of columns; parts of a tile of rows; one step of depth, and
// several blocks of it, whole and cut.
TEST_P(VectorGemmTest, HasTheBitsOfItsOrderInEverySize) {
  for (const int64_t in : {1, 3, 64, 100}) {
    for (const int64_t width :
         {1, 4, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32, 33, 40, 47, 48, 49, 64, 72, 97, 192}) {
      for (const int64_t rows : {1, 3, 4, 5, 8, 16, 21}) Check({in, width, rows});
    }
  }
  for (const int64_t sum_block : {16, 100, 256, 512, 1000, 4096}) {
    Check({1000, 50, 17, sum_block});
    Check({1024, 24, 16, sum_block});
    Check({1001, 50, 17, sum_block});  // bfloat16 weights end with half a pair
  }
  for (const int64_t width : {7, 24, 49}) {
    for (const int64_t sum_block : {100, 384, 512}) {
      Check({500, width, 67, sum_block}, {.bias = true, .add_to_y = true});
    }
  }
  Check({768, 192, 256});
}

TEST_P(VectorGemmTest, AddsBiasAndWhatIsThere) {
  for (const int64_t width : {5, 24, 50, 64}) {
    for (const Size& size : {Size{40, width, 19}, Size{300, width, 16, 128}}) {
      Check(size, {.bias = true});
      Check(size, {.add_to_y = true});
      Check(size, {.bias = true, .add_to_y = true});
    }
  }
}

TEST_P(VectorGemmTest, GivesARowTheSameBitsInEveryPlace) {
  constexpr Size kSize{1000, 81, 48, 256};
  std::vector<float> x = RandomValues(kSize.rows * kSize.in, 3);
  const std::vector<float> weight = RandomValues(kSize.width * kSize.in, 4);
  for (int64_t r = 1; r < kSize.rows; ++r) std::copy_n(x.begin(), kSize.in, &x[r * kSize.in]);
  const std::vector<float> y = Multiply(kSize, x, weight);
  for (int64_t r = 1; r < kSize.rows; ++r) {
    EXPECT_EQ(std::memcmp(&y[r * kSize.width], y.data(), kSize.width * sizeof(float)), 0) << r;
  }
}

TEST_P(VectorGemmTest, KeepsNanInItsRow) {
  constexpr Size kSize{64, 50, 20};
  std::vector<float> x = RandomValues(kSize.rows * kSize.in, 5);
  const std::vector<float> weight = RandomValues(kSize.width * kSize.in, 6);
  const std::vector<float> clean = Multiply(kSize, x, weight);
  x[13 * kSize.in + 5] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> y = Multiply(kSize, x, weight);
  for (int64_t i = 0; i < kSize.rows * kSize.width; ++i) {
    const bool spoilt = i / kSize.width == 13;
    EXPECT_EQ(std::isnan(y[i]), spoilt) << i;
    EXPECT_TRUE(spoilt || y[i] == clean[i]) << i;
  }
}

// Among them numbers that are denormal in the type, and the largest ones.
TEST_P(VectorGemmTest, TakesEveryNumberOfTheType) {
  const bool is_bfloat16 = TypeOf(GetParam()) == DataType::kBFloat16;
  const std::vector<float> numbers = {
      0.0f,      -0.0f,    1.0f,     -1.5f,     0x1p-24f,
      -0x3p-20f, 0x1p-14f, 65504.0f, -65504.0f, is_bfloat16 ? 0x1p127f : 2.0f};
  const Size size{1, static_cast<int64_t>(numbers.size()), 1};
  EXPECT_EQ(Multiply(size, {1.0f}, numbers), Rounded(numbers));
}

TEST_P(VectorGemmTest, PadsColumnsToVectorsAlone) {
  const int64_t element = ByteWidth(TypeOf(GetParam()));
  EXPECT_EQ(VectorWeightBytes(GetParam(), 768, 192), 768 * 192 * element);
  EXPECT_EQ(VectorWeightBytes(GetParam(), 100, 64), 100 * 64 * element);
  EXPECT_LE(VectorWeightBytes(GetParam(), 10, 1), 10 * 16 * element);
}

std::string NameOfElement(const testing::TestParamInfo<GemmElement>& info) {
  const bool is_both = info.param == GemmElement::kBFloat16Both;
  return std::string(Name(TypeOf(info.param))) + (is_both ? "Both" : "");
}

// isa_test.cc tests that the others are refused.
std::vector<GemmElement> ElementsOfThisCpu() {
  std::vector<GemmElement> elements = {GemmElement::kFloat32, GemmElement::kBFloat16,
                                       GemmElement::kFloat16};
  if (EffectiveIsa() == "neon_bf16") elements.push_back(GemmElement::kBFloat16Both);
  return elements;
}

INSTANTIATE_TEST_SUITE_P(Types, VectorGemmTest, testing::ValuesIn(ElementsOfThisCpu()),
                         NameOfElement);

std::vector<int32_t> MultiplyInt8(const Size& size, const std::vector<int8_t>& x,
                                  const std::vector<int8_t>& weight) {
  const GuardedBuffer<char> x_rows(size.rows * size.in);
  std::memcpy(x_rows.data(), x.data(), x.size());
  const GuardedBuffer<char> packed(VectorWeightBytes(GemmElement::kInt8, size.in, size.width));
  PackVectorWeight(GemmElement::kInt8,
                   {reinterpret_cast<const char*>(weight.data()), size.in, size.in, size.width},
                   packed.data());
  const GuardedBuffer<float> y(size.rows * size.width);
  RunVectorGemm({.element = GemmElement::kInt8,
                 .in = size.in,
                 .width = size.width,
                 .rows = size.rows,
                 .x = x_rows.data(),
                 .x_row_bytes = size.in,
                 .weight = packed.data(),
                 .bias = nullptr,
                 .add_to_y = false,
                 .sum_block = kVectorSumBlock,
                 .y = y.data(),
                 .y_stride = size.width});
  std::vector<int32_t> sums(y.size());
  std::memcpy(sums.data(), y.data(), sums.size() * sizeof(int32_t));
  return sums;
}

void ExpectExact(const Size& size, const std::vector<int8_t>& x,
                 const std::vector<int8_t>& weight) {
  std::vector<int32_t> expected(size.rows * size.width);
  for (int64_t r = 0; r < size.rows; ++r) {
    for (int64_t c = 0; c < size.width; ++c) {
      for (int64_t k = 0; k < size.in; ++k) {
        expected[r * size.width + c] += x[r * size.in + k] * weight[c * size.in + k];
      }
    }
  }
  EXPECT_EQ(MultiplyInt8(size, x, weight), expected) << testing::PrintToString(size);
}

// Returns values of -127 to 127.
std::vector<int8_t> Bytes(int64_t count, uint32_t seed) {
  std::vector<int8_t> bytes;
  for (const float value : RandomValues(count, seed)) {
    bytes.push_back(static_cast<int8_t>(std::clamp(value * 127, -127.0f, 127.0f)));
  }
  return bytes;
}

TEST(Int8VectorGemmTest, IsExactInEverySize) {
  for (const int64_t in : {1, 2, 3, 4, 5, 31, 64, 67, 768}) {
    for (const int64_t width : {1, 3, 4, 7, 8, 9, 12, 13, 16, 23, 24, 25, 31, 32, 33, 50, 192}) {
      for (const int64_t rows : {1, 2, 3, 4, 7, 8, 11, 16}) {
        ExpectExact({in, width, rows}, Bytes(rows * in, 1), Bytes(width * in, 2));
      }
    }
  }
  // Several tiles of x.
  ExpectExact({3072, 64, 64}, Bytes(64 * 3072, 3), Bytes(64 * 3072, 4));
  ExpectExact({515, 50, 19}, Bytes(19 * 515, 5), Bytes(50 * 515, 6));
}

// Every pair of the largest magnitudes, which would saturate sums of 16 bits that have not enough
// room.
TEST(Int8VectorGemmTest, NeverSaturates) {
  constexpr Size kSize{4096, 24, 8};
  for (const int pattern : {0, 1, 2, 3}) {
    const auto extreme = [&](int64_t i, int sign) {
      const bool is_negative =
          pattern == 1 || (pattern == 2 && i % 2 == 1) || (pattern == 3 && i % 4 >= 2);
      return static_cast<int8_t>((is_negative ? -127 : 127) * sign);
    };
    for (const int sign : {1, -1}) {
      std::vector<int8_t> x(kSize.rows * kSize.in), weight(kSize.width * kSize.in);
      for (size_t i = 0; i < x.size(); ++i) x[i] = extreme(static_cast<int64_t>(i), sign);
      for (size_t i = 0; i < weight.size(); ++i) weight[i] = extreme(static_cast<int64_t>(i), 1);
      ExpectExact(kSize, x, weight);
      std::fill(weight.begin(), weight.end(), int8_t{127});
      ExpectExact(kSize, x, weight);
    }
  }
}

// No result tells whether it was computed by the fast instructions.
TEST(VectorKernelNameTest, NamesTheFastestOfTheCpu) {
  const std::string isa = EffectiveIsa();
  const bool is_arm = isa.substr(0, 4) == "neon", has_avx512 = isa.substr(0, 6) == "avx512";
  const char* expected = has_avx512 || isa == "amx" ? "avx512" : "avx2";
  if (is_arm) expected = "neon";
  for (const GemmElement element :
       {GemmElement::kFloat32, GemmElement::kBFloat16, GemmElement::kFloat16}) {
    EXPECT_STREQ(VectorKernelName(element), expected);
  }
  const char* of_int8 = HasInt8Dots() ? "avx_vnni" : "avx2";
  if (is_arm) of_int8 = isa == "neon" ? "neon" : isa == "neon_dotprod" ? "sdot" : "smmla";
  EXPECT_STREQ(VectorKernelName(GemmElement::kInt8), of_int8);
  if (isa != "neon_bf16") return;
  EXPECT_STREQ(VectorKernelName(GemmElement::kBFloat16Both), "bfmmla");
}

}  // namespace vector_gemm_test
}  // namespace attendant
