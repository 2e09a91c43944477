#include "engine/kernels/gemm/gemm.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "engine/kernels/convert.h"
#include "engine/kernels/gemm/number_format.h"
#include "engine/kernels/isa.h"
#include "gmock/gmock.h"
#include "tests/reference/reference.h"
#include "tests/support/compute_modes.h"
#include "tests/support/random_values.h"

namespace attendant {
namespace gemm_test {

using reference::Matrix;

struct Shape {
  int64_t in;
  int64_t out;
};

struct Case {
  Shape shape;
  ComputeMode mode;
};

std::string NameOf(const Case& tested) {
  return std::to_string(tested.shape.in) + "to" + std::to_string(tested.shape.out) + "In" +
         NameOf(tested.mode);
}

void PrintTo(const Case& tested, std::ostream* out) { *out << NameOf(tested); }

std::string NameOfParam(const testing::TestParamInfo<Case>& info) { return NameOf(info.param); }

// Returns each shape in each mode.
std::vector<Case> Cases(const std::vector<Shape>& shapes, const std::vector<ComputeMode>& modes) {
  std::vector<Case> cases;
  for (const Shape& shape : shapes) {
    for (const ComputeMode& mode : modes) cases.push_back({shape, mode});
  }
  return cases;
}

std::vector<Case> Native(const std::vector<Shape>& shapes) { return Cases(shapes, NativeModes()); }

std::vector<Case> Emulated(const std::vector<Shape>& shapes) {
  return Cases(shapes, EmulatedModes());
}

// Threads with their workspace.
struct Team {
  explicit Team(int size) : threads(size), workspace(threads) {}

  ThreadTeam threads;
  GemmWorkspace workspace;
};

// A linear layer with its weights, and a batch of the largest number of rows that a test needs.
struct Layer {
  Layer(Shape size, int64_t rows, const ComputeMode& compute_mode = {})
      : shape(size),
        mode(compute_mode),
        weight(RandomValues(shape.out * shape.in, 1)),
        bias(RandomValues(shape.out, 2)),
        x(RandomValues(PaddedRows(rows) * shape.in, 3)),
        linear(*PackedLinear::Pack(ViewOf(weight, shape.out, shape.in), bias, mode)) {}

  // Returns the result for `rows` rows from `begin` on. The rows that x has beyond them do not
  // matter, and no further row of y is written.
  std::vector<float> Apply(int team_size, int64_t begin, int64_t rows,
                           Activation activation = Activation::kIdentity) {
    std::unique_ptr<Team>& team = teams[team_size];
    if (team == nullptr) team = std::make_unique<Team>(team_size);
    GemmWorkspace& workspace = team->workspace;
    const int64_t padded = PaddedRows(rows);
    workspace.Reserve(linear, padded);
    workspace.ShareRowsFrom(share_rows_from);
    constexpr float kUntouched = 1234.5f;
    std::vector<float> rows_in(padded * shape.in, std::nanf("")), y(padded * shape.out, kUntouched);
    std::copy_n(x.begin() + begin * shape.in, rows * shape.in, rows_in.begin());
    workspace.Apply(linear, ViewOf(std::as_const(rows_in), rows, shape.in),
                    ViewOf(y, rows, shape.out), activation);
    EXPECT_EQ(std::count(y.begin() + rows * shape.out, y.end(), kUntouched),
              (padded - rows) * shape.out);
    y.resize(rows * shape.out);
    return y;
  }

  // Returns the result for the first rows in float64, from inputs that are rounded as the engine
  // rounds them.
  Matrix Expected(int64_t rows) const {
    return reference::Linear(
        reference::InputOperand(mode.type, ViewOf(x, rows, shape.in)),
        reference::WeightOperand(mode.type, ViewOf(weight, shape.out, shape.in)), bias);
  }

  Shape shape;
  ComputeMode mode;
  std::vector<float> weight, bias, x;
  PackedLinear linear;
  int64_t share_rows_from = 0;
  std::map<int, std::unique_ptr<Team>> teams;  // by size
};

class GemmReferenceTest : public testing::TestWithParam<Case> {};

TEST_P(GemmReferenceTest, MatchesFloat64WithBiasAndActivation) {
  constexpr int64_t kRows = 37;
  const Shape shape = GetParam().shape;
  Layer layer(shape, kRows, GetParam().mode);
  const Matrix expected = layer.Expected(kRows);
  // oneDNN's float32 code for arm64 adds all products of a row one after another.
  const bool adds_in_order = kOldestIsa == Isa::kNeon && layer.mode.gemm == Gemm::kOneDnn;
  const double tolerance = (adds_in_order ? 1.2e-6 : 1e-6) * std::sqrt(shape.in) + 2e-6;
  std::vector<float> y = layer.Apply(2, 0, kRows);
  EXPECT_LT(reference::MaxDifference(expected, ViewOf(y, kRows, shape.out)), tolerance);
  y = layer.Apply(2, 0, kRows, Activation::kGelu);
  EXPECT_LT(reference::MaxDifference(reference::Activate(Activation::kGelu, expected),
                                     ViewOf(y, kRows, shape.out)),
            2 * tolerance);
}

const std::vector<Shape> kReferenceShapes = {{1, 1},      {4, 3},     {3, 17},   {26, 26},
                                             {64, 192},   {100, 193}, {256, 40}, {312, 1200},
                                             {384, 1152}, {768, 768}};

INSTANTIATE_TEST_SUITE_P(Shapes, GemmReferenceTest, testing::ValuesIn(Native(kReferenceShapes)),
                         NameOfParam);
INSTANTIATE_TEST_SUITE_P(Emulated, GemmReferenceTest, testing::ValuesIn(Emulated(kReferenceShapes)),
                         NameOfParam);

// In theory, the error of each product of kBf16x3 is at most three roundings, those of each operand
// and of the product of the low parts; it is usually much less.
TEST(GemmTest, Bf16x3IsNearlyFloat32) {
  constexpr int64_t kRows = 40;
  for (const Shape shape : {Shape{64, 192}, Shape{768, 100}, Shape{1536, 40}}) {
    Layer layer(shape, kRows, BestMode(ComputeType::kBf16x3));
    Matrix x(ViewOf(std::as_const(layer.x), kRows, shape.in));
    Matrix weight(ViewOf(std::as_const(layer.weight), shape.out, shape.in));
    const Matrix exact = reference::Linear(x, weight, layer.bias);
    const auto to_magnitude = [](Matrix& matrix) {
      for (int64_t i = 0; i < matrix.rows() * matrix.cols(); ++i) {
        double& element = matrix(i / matrix.cols(), i % matrix.cols());
        element = std::abs(element);
      }
    };
    to_magnitude(x);
    to_magnitude(weight);
    const Matrix magnitudes = reference::Linear(x, weight, {});
    const std::vector<float> y = layer.Apply(2, 0, kRows);
    double largest = 0;
    for (int64_t i = 0; i < kRows * shape.out; ++i) {
      const int64_t r = i / shape.out, c = i % shape.out;
      largest = std::max(largest, std::abs(y[i] - exact(r, c)) / magnitudes(r, c));
    }
    EXPECT_LT(largest, 3 * 0x1p-16);
    EXPECT_LT(largest, 0x1p-18) << "though no element is off by as much";
    EXPECT_GT(largest, 0x1p-26) << "it is not float32";
  }
}

class GemmColumnsTest : public testing::TestWithParam<Case> {};

// Several threads pack a layer of several panels as one thread does, and many threads pack narrower
// panels.
TEST_P(GemmColumnsTest, DoNotDependOnTheThreadsThatPack) {
  const Shape shape = GetParam().shape;
  Layer layer(shape, 16, GetParam().mode);
  const std::vector<float> expected = layer.Apply(1, 0, 16);
  for (const int threads : {3, 24}) {
    layer.teams.clear();
    layer.linear = *PackedLinear::Pack(ViewOf(layer.weight, shape.out, shape.in), layer.bias,
                                       layer.mode, ThreadTeam(threads));
    EXPECT_EQ(layer.Apply(1, 0, 16), expected) << threads;
  }
}

TEST_P(GemmColumnsTest, EqualThoseOfTheWholeProduct) {
  constexpr int64_t kRows = 48;
  const Shape shape = GetParam().shape;
  Layer layer(shape, kRows, GetParam().mode);
  const std::vector<float> whole = layer.Apply(2, 0, kRows);
  for (const auto& [begin, end] :
       std::vector<std::pair<int64_t, int64_t>>{{0, shape.out},
                                                {0, 1},
                                                {shape.out - 1, shape.out},
                                                {shape.out / 3, shape.out / 2 + 1}}) {
    std::vector<float> y(whole.size(), -1.0f);
    layer.teams[2]->workspace.Apply(LinearColumns{layer.linear, begin, end},
                                    ViewOf(std::as_const(layer.x), kRows, shape.in),
                                    ViewOf(y, kRows, shape.out));
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t c = 0; c < shape.out; ++c) {
        const float value = y[r * shape.out + c];
        const bool is_in = c >= begin && c < end;
        const bool is_far = c <= begin - kPanelWidth || c >= end + kPanelWidth - 1;
        const bool is_left = value == -1.0f, is_made = value == whole[r * shape.out + c];
        ASSERT_TRUE(is_in ? is_made : is_left || (is_made && !is_far)) << r << ", " << c;
      }
    }
  }
}

const std::vector<Shape> kColumnShapes = {{3, 17}, {48, 144}, {100, 193}, {64, 1152}};

INSTANTIATE_TEST_SUITE_P(Shapes, GemmColumnsTest, testing::ValuesIn(Native(kColumnShapes)),
                         NameOfParam);
INSTANTIATE_TEST_SUITE_P(Emulated, GemmColumnsTest, testing::ValuesIn(Emulated(kColumnShapes)),
                         NameOfParam);

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GemmToPairsTest);
class GemmToPairsTest : public testing::TestWithParam<Case> {};

TEST_P(GemmToPairsTest, RoundsTheRowsOfTheProduct) {
  constexpr int64_t kRows = 80;
  const Shape shape = GetParam().shape;
  Layer layer(shape, kRows, GetParam().mode);
  const std::vector<float> rows = layer.Apply(2, 0, kRows);
  std::vector<uint16_t> expected(rows.size()), pairs(rows.size());
  ConvertInput({.type = ComputeType::kBf16}, rows.data(), kRows * shape.out, nullptr,
               {expected.data()});
  std::vector<float> y(rows.size() / 2);
  layer.teams[2]->workspace.Apply(layer.linear, ViewOf(std::as_const(layer.x), kRows, shape.in),
                                  PreparedRows::Pairs(ViewOf(y, kRows, shape.out / 2)));
  std::memcpy(pairs.data(), y.data(), y.size() * sizeof(float));
  EXPECT_EQ(pairs, expected);
}

const std::vector<Shape> kPairsShapes = {{3, 18}, {64, 1152}};

// Only CPUs with bf16 units make pairs. On others isa_test.cc tests that they are refused.
std::vector<Case> IfMakesPairs(std::vector<Case> cases) {
  return HasBf16Units() ? cases : std::vector<Case>();
}

INSTANTIATE_TEST_SUITE_P(Shapes, GemmToPairsTest,
                         testing::ValuesIn(IfMakesPairs(Native(kPairsShapes))), NameOfParam);
INSTANTIATE_TEST_SUITE_P(Emulated, GemmToPairsTest,
                         testing::ValuesIn(IfMakesPairs(Emulated(kPairsShapes))), NameOfParam);

class GemmPairTest : public testing::TestWithParam<Case> {};

TEST_P(GemmPairTest, GivesTheBitsOfTwoLayersOneAfterTheOther) {
  const auto& [shape, mode] = GetParam();
  for (const int64_t rows : {1, 37, 300}) {
    Layer first({24, shape.in}, rows, mode), second(shape, 1, mode);
    const std::vector<float> between = first.Apply(2, 0, rows, Activation::kGelu);
    second.x = between;
    const std::vector<float> expected = second.Apply(2, 0, rows);

    const int64_t padded = PaddedRows(rows);
    const ThreadTeam team(2);
    GemmWorkspace workspace(team);
    workspace.Reserve(first.linear, padded);
    workspace.ReserveInner(second.linear, padded);
    for (const int64_t share_rows_from : {0, 200, 1}) {
      workspace.ShareRowsFrom(share_rows_from);
      std::vector<float> inner(padded * shape.in), y(expected.size());
      const PreparedRows made = {ViewOf(inner, rows, shape.in),
                                 workspace.PrepareInner(shape.in, rows)};
      workspace.Apply(first.linear, ViewOf(std::as_const(first.x), rows, 24), made,
                      Activation::kGelu);
      workspace.Apply(second.linear, made, ViewOf(y, rows, shape.out));
      EXPECT_EQ(y, expected) << rows << " rows, shared from " << share_rows_from;
    }
  }
}

const std::vector<Shape> kPairShapes = {{5, 3}, {193, 64}, {1536, 384}};

INSTANTIATE_TEST_SUITE_P(Shapes, GemmPairTest, testing::ValuesIn(Native(kPairShapes)), NameOfParam);
INSTANTIATE_TEST_SUITE_P(Emulated, GemmPairTest, testing::ValuesIn(Emulated(kPairShapes)),
                         NameOfParam);

class GemmPreparedTest : public testing::TestWithParam<Case> {
 protected:
  // The packed x in the workspace, which two workers write tile by tile.
  static PackedInput Prepare(const Layer& layer, int64_t rows, GemmWorkspace& workspace) {
    const PackedInput packed = workspace.Prepare(layer.shape.in, rows);
    const int64_t in = layer.shape.in;
    ThreadTeam(2).ParallelFor(rows, [&](int worker, int64_t r) {
      packed.WriteRows(worker, r, {&layer.x[r * in], 1, in, in});
    });
    return packed;
  }
};

// Only kF32 then reads the rows themselves.
TEST_P(GemmPreparedTest, GivesTheBitsOfAProductThatPacksItsInput) {
  const auto& [shape, mode] = GetParam();
  for (const int64_t rows : {1, 37, 300}) {
    const int64_t padded = PaddedRows(rows);
    Layer layer(shape, rows, mode);
    const std::vector<float> expected = layer.Apply(2, 0, rows);
    const std::vector<float> nothing(padded * shape.in, std::nanf(""));
    const ThreadTeam team(2);
    GemmWorkspace workspace(team);
    workspace.Reserve(layer.linear, padded);
    for (const int64_t share_rows_from : {0, 1}) {
      workspace.ShareRowsFrom(share_rows_from);
      const PackedInput packed = Prepare(layer, rows, workspace);
      const std::vector<float>& read = mode.type == ComputeType::kF32 ? layer.x : nothing;
      const LinearInput x = {ViewOf(read, rows, shape.in), packed};
      std::vector<float> y(expected.size());
      workspace.Apply(layer.linear, x, ViewOf(y, rows, shape.out));
      EXPECT_EQ(y, expected) << rows << " rows, shared from " << share_rows_from;
    }
  }
}

TEST_P(GemmPreparedTest, PacksItsInputIfAnotherReplacedIt) {
  constexpr int64_t kRows = 48;
  const auto& [shape, mode] = GetParam();
  Layer layer(shape, kRows, mode), other({shape.in, 5}, kRows, mode);
  const std::vector<float> expected = layer.Apply(2, 0, kRows);
  const ThreadTeam team(2);
  GemmWorkspace workspace(team);
  workspace.Reserve(layer.linear, kRows);
  workspace.Reserve(other.linear, kRows);
  const PackedInput packed = Prepare(layer, kRows, workspace);
  std::vector<float> between(kRows * 5), y(expected.size());
  const std::vector<float> zeros(layer.x.size(), 0.0f);
  workspace.Apply(other.linear, ViewOf(zeros, kRows, shape.in), ViewOf(between, kRows, 5));
  workspace.Apply(layer.linear, {ViewOf(std::as_const(layer.x), kRows, shape.in), packed},
                  ViewOf(y, kRows, shape.out));
  EXPECT_EQ(y, expected);
}

const std::vector<Shape> kPreparedShapes = {{3, 17}, {100, 193}, {1536, 384}};

INSTANTIATE_TEST_SUITE_P(Shapes, GemmPreparedTest, testing::ValuesIn(Native(kPreparedShapes)),
                         NameOfParam);
INSTANTIATE_TEST_SUITE_P(Emulated, GemmPreparedTest, testing::ValuesIn(Emulated(kPreparedShapes)),
                         NameOfParam);

class GemmInvarianceTest : public testing::TestWithParam<Case> {};

// Row r computed alone defines the bits of row r in every batch. The large batches decide which
// bits those are.
TEST_P(GemmInvarianceTest, InvarianceOfRowsToBatchPlaceAndTeam) {
  constexpr int64_t kRows = 600;
  const Shape shape = GetParam().shape;
  Layer layer(shape, kRows, GetParam().mode);
  const std::vector<float> all = layer.Apply(1, 0, kRows);
  const auto expect_same = [&](int team, int64_t begin, int64_t rows) {
    const std::vector<float> some = layer.Apply(team, begin, rows);
    ASSERT_EQ(std::memcmp(some.data(), &all[begin * shape.out], some.size() * sizeof(float)), 0)
        << "rows " << begin << " to " << begin + rows << ", team of " << team;
  };
  const bool small = shape.in * shape.out < 100000;
  for (int64_t rows = 1; rows <= kRows; rows += small ? 1 : rows < 66 ? 13 : 89) {
    expect_same(1 + static_cast<int>(rows % 3), (kRows - rows) / 2, rows);
  }
  for (const int team : {1, 2, 3}) expect_same(team, 0, kRows);
  for (const int64_t rows : {1, 3, 4, 6, 8, 12, 15, 16, 17, 48, 64, 65, 128, 255, 257})
    expect_same(2, 1, rows);
  layer.share_rows_from = 1;
  for (const int team : {1, 2, 3, 4}) expect_same(team, 0, kRows);
  for (const int64_t rows : {1, 17, 48, 65, 255, 527})
    expect_same(1 + static_cast<int>(rows % 4), 1, rows);
}

INSTANTIATE_TEST_SUITE_P(Shapes, GemmInvarianceTest,
                         testing::ValuesIn(Native({{4, 3},
                                                   {26, 26},
                                                   {26, 100},
                                                   {384, 1152},
                                                   {384, 384},
                                                   {384, 1536},
                                                   {1536, 384},
                                                   {768, 2304},
                                                   {768, 768},
                                                   {768, 3072},
                                                   {3072, 768},
                                                   {1024, 3072},
                                                   {1024, 1024},
                                                   {1024, 4096},
                                                   {4096, 1024}})),
                         NameOfParam);
INSTANTIATE_TEST_SUITE_P(Emulated, GemmInvarianceTest,
                         testing::ValuesIn(Emulated({{26, 100}, {384, 384}, {1536, 200}})),
                         NameOfParam);

TEST(GemmTest, MatchesWithoutBias) {
  Layer layer({30, 50}, 16);
  const std::vector<float> no_bias(50, 0.0f);
  const absl::StatusOr<PackedLinear> linear =
      PackedLinear::Pack(ViewOf(std::as_const(layer.weight), 50, 30), {});
  ASSERT_TRUE(linear.ok());
  const ThreadTeam team(1);
  GemmWorkspace workspace(team);
  workspace.Reserve(*linear, 16);
  std::vector<float> y(16 * 50);
  workspace.Apply(*linear, ViewOf(std::as_const(layer.x), 16, 30), ViewOf(y, 16, 50));
  const Matrix expected =
      reference::Linear(Matrix(ViewOf(std::as_const(layer.x), 16, 30)),
                        Matrix(ViewOf(std::as_const(layer.weight), 50, 30)), {});
  EXPECT_LT(reference::MaxDifference(expected, ViewOf(y, 16, 50)), 1e-5);
}

TEST(GemmTest, InvarianceToStrides) {
  constexpr int64_t kIn = 70, kOut = 210, kRows = 80, kGap = 9;
  Layer layer({kIn, kOut}, kRows);
  const std::vector<float> dense = layer.Apply(1, 0, kRows);
  std::vector<float> x(kRows * (kIn + kGap), 1e30f), y(kRows * (kOut + kGap), -1.0f);
  for (int64_t r = 0; r < kRows; ++r) std::copy_n(&layer.x[r * kIn], kIn, &x[r * (kIn + kGap)]);
  const ThreadTeam team(2);
  GemmWorkspace workspace(team);
  workspace.Reserve(layer.linear, kRows);
  workspace.Apply(layer.linear, MatrixView<const float>{x.data(), kRows, kIn, kIn + kGap},
                  MatrixView<float>{y.data(), kRows, kOut, kOut + kGap});
  for (int64_t r = 0; r < kRows; ++r) {
    EXPECT_EQ(std::memcmp(&y[r * (kOut + kGap)], &dense[r * kOut], kOut * sizeof(float)), 0) << r;
    for (int64_t c = kOut; c < kOut + kGap; ++c) EXPECT_EQ(y[r * (kOut + kGap) + c], -1.0f);
  }
}

TEST(GemmTest, PacksAViewAndKeepsNothingOfIt) {
  Layer layer({20, 33}, 16);
  std::vector<float> wide(33 * 25, 1e30f);
  for (int64_t r = 0; r < 33; ++r) std::copy_n(&layer.weight[r * 20], 20, &wide[r * 25]);
  PackedLinear linear = *PackedLinear::Pack({wide.data(), 33, 20, 25}, layer.bias);
  wide.assign(wide.size(), std::nanf(""));
  EXPECT_EQ(linear.in_features(), 20);
  EXPECT_EQ(linear.out_features(), 33);
  EXPECT_GE(linear.bytes(), 33 * 21 * 4);
  const std::vector<float> expected = layer.Apply(1, 0, 16);
  layer.linear = std::move(linear);
  EXPECT_EQ(layer.Apply(1, 0, 16), expected);
}

TEST(GemmTest, DoesNothingForNoRows) {
  Layer layer({8, 8}, 16);
  EXPECT_TRUE(layer.Apply(2, 0, 0).empty());
}

TEST(GemmTest, KeepsNonFiniteValuesInTheirRow) {
  for (const ComputeType type : kComputeTypes) {
    const ComputeMode mode{type, type != ComputeType::kF32};
    for (const float value : {std::nanf(""), INFINITY, -INFINITY}) {
      Layer layer({40, 200}, 128, mode);
      layer.x[77 * 40 + 3] = value;
      const std::vector<float> y = layer.Apply(2, 0, 128);
      for (size_t i = 0; i < y.size(); ++i) ASSERT_NE(std::isfinite(y[i]), i / 200 == 77) << i;
    }
  }
}

// Values for which the sum of low and high parts could be infinity minus infinity.
TEST(GemmTest, Bf16x3OverflowsAsFloat32Does) {
  const Shape shape{40, 200};
  const ComputeMode mode = BestMode(ComputeType::kBf16x3);
  for (const float value : {INFINITY, -INFINITY, 3.4e38f, -3.3e38f}) {
    Layer exact(shape, 16), layer(shape, 16, mode);
    exact.x[3 * 40 + 7] = layer.x[3 * 40 + 7] = value;
    const std::vector<float> expected = exact.Apply(1, 0, 16), y = layer.Apply(1, 0, 16);
    for (int64_t c = 3 * 200; c < 4 * 200; ++c) {
      if (std::isfinite(expected[c])) {
        EXPECT_NEAR(y[c], expected[c], std::abs(expected[c]) * 0x1p-14) << c;
      } else {
        EXPECT_EQ(y[c], expected[c]) << c;
      }
    }
  }
}

TEST(GemmTest, GivesTheBiasForRowsOfZeros) {
  for (const ComputeType type : {ComputeType::kBf16x3, ComputeType::kBf16, ComputeType::kInt8}) {
    Layer layer({40, 200}, 16, {type, true});
    std::fill_n(layer.x.begin() + 3 * 40, 40, 0.0f);
    std::fill_n(layer.weight.begin() + 5 * 40, 40, 0.0f);
    layer.linear =
        *PackedLinear::Pack(ViewOf(std::as_const(layer.weight), 200, 40), layer.bias, layer.mode);
    const std::vector<float> y = layer.Apply(1, 0, 16);
    for (int64_t c = 0; c < 200; ++c) EXPECT_EQ(y[3 * 200 + c], layer.bias[c]);
    for (int64_t r = 0; r < 16; ++r) EXPECT_EQ(y[r * 200 + 5], layer.bias[5]);
  }
}

// Tests the int8 path of oneDNN on every CPU. Without VNNI only sums of two large products
// saturate, and here at most one element of a pair is large in the weight. (Blocks of 128 would be
// rotated.)
TEST(GemmTest, Int8MatchesOnAnyCpuWhereNothingSaturates) {
  constexpr int64_t kRows = 80;
  const Shape shape{120, 210};
  const ComputeMode native{ComputeType::kInt8, false};
  Layer layer(shape, kRows, {ComputeType::kInt8, true});
  for (float& weight : layer.weight) weight *= 0.49f;
  for (int64_t c = 0; c < shape.out; ++c) {
    layer.weight[c * shape.in] = 1;
    for (int64_t i = 1; i < 4; ++i) layer.weight[c * shape.in + i] = 0;
  }
  const MatrixView<const float> weight = ViewOf(std::as_const(layer.weight), shape.out, shape.in);
  layer.linear = *PackedLinear::Pack(weight, layer.bias, native);
  const std::vector<float> y = layer.Apply(2, 0, kRows, Activation::kRelu);
  const Matrix expected = reference::Activate(Activation::kRelu, layer.Expected(kRows));
  EXPECT_LT(reference::MaxDifference(expected, ViewOf(y, kRows, shape.out)), 2e-5);
  // Sums of integers are exact in float32 too, so that the emulation has the same bits.
  layer.linear = *PackedLinear::Pack(weight, layer.bias, layer.mode);
  EXPECT_EQ(layer.Apply(2, 0, kRows, Activation::kRelu), y);
}

// One large element in an input row costs the other elements little of their accuracy.
TEST(GemmTest, Int8BearsOutliers) {
  constexpr int64_t kRows = 16;
  for (const Shape shape : {Shape{384, 64}, Shape{312, 64}}) {
    Layer layer(shape, kRows, {ComputeType::kInt8, true});
    for (int64_t r = 0; r < kRows; ++r) layer.x[r * shape.in + 99] = 20.0f;
    const Matrix exact = reference::Linear(
        Matrix(ViewOf(std::as_const(layer.x), kRows, shape.in)),
        Matrix(ViewOf(std::as_const(layer.weight), shape.out, shape.in)), layer.bias);
    // A step of 20 / 127 with a uniform error and sqrt(in) weights with a standard deviation of
    // 0.58 would leave an error with a standard deviation of 0.5, and a largest error of at least
    // twice that.
    const std::vector<float> y = layer.Apply(1, 0, kRows);
    EXPECT_LT(reference::MaxDifference(exact, ViewOf(y, kRows, shape.out)), 0.5);
  }
}

TEST(GemmTest, HoldsTheBytesOfItsComputeType) {
  const Shape shape{256, 384};
  const auto bytes = [&](const ComputeMode& mode) { return Layer(shape, 1, mode).linear.bytes(); };
  const int64_t elements = shape.in * shape.out;
  EXPECT_EQ(bytes({}), 4 * elements + 4 * shape.out);
  EXPECT_EQ(bytes({ComputeType::kBf16x3, true}), 8 * elements + 4 * shape.out);
  EXPECT_EQ(bytes({ComputeType::kBf16, true}), 4 * elements + 4 * shape.out);
  EXPECT_EQ(bytes({ComputeType::kInt8, true}), 4 * elements + 8 * shape.out);
  // oneDNN may keep up to three sums for each column in addition.
  EXPECT_GE(bytes({ComputeType::kInt8, false}), elements + 8 * shape.out);
  EXPECT_LE(bytes({ComputeType::kInt8, false}), elements + 20 * shape.out);
}

// Rounds values in place to numbers that the type holds.
void RoundTo(DataType type, std::vector<float>& values) {
  std::vector<uint16_t> narrow(values.size());
  const auto count = static_cast<int64_t>(values.size());
  FromFloat(values.data(), count, type, narrow.data());
  ToFloat(type, narrow.data(), count, values.data());
}

TEST(GemmTest, ReportsErrorsOfOneDnn) {
  const absl::Status status =
      PackedLinear::Pack({nullptr, 16, -1, -1}, {}, {.gemm = Gemm::kOneDnn}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("oneDNN could not pack a weight of [16, -1]: "));
}

class StoredWeightsTest : public testing::TestWithParam<std::pair<WeightType, DataType>> {
 protected:
  PackedLinear Pack(const Layer& layer, WeightType weights) {
    const MatrixView<const float> weight = ViewOf(layer.weight, layer.shape.out, layer.shape.in);
    return *PackedLinear::Pack(weight, layer.bias, {.weights = weights});
  }
};

// On the kernels that serve float32 on this CPU, oneDNN's or the vector GEMM's.
TEST_P(StoredWeightsTest, HaveTheBitsOfFloat32) {
  const auto& [type, data_type] = GetParam();
  constexpr int64_t kRows = 83;
  for (const Shape shape : {Shape{3, 5}, Shape{24, 50}, Shape{100, 193}, Shape{384, 1152},
                            Shape{768, 768}, Shape{1000, 64}, Shape{3072, 200}}) {
    Layer layer(shape, kRows);
    RoundTo(data_type, layer.weight);
    layer.linear = Pack(layer, WeightType::kF32);
    EXPECT_EQ(layer.linear.plan().weights, WeightType::kF32);
    const int64_t float32_bytes = layer.linear.bytes();
    const std::vector<float> expected = layer.Apply(2, 0, kRows, Activation::kGelu);
    layer.linear = Pack(layer, WeightType::kAuto);
    layer.teams.clear();
    EXPECT_EQ(layer.linear.plan().weights, type);
    EXPECT_EQ(layer.linear.plan().gemm, Gemm::kVector);
    EXPECT_EQ(layer.Apply(2, 0, kRows, Activation::kGelu), expected);
    EXPECT_EQ(
        layer.Apply(1, 5, 9, Activation::kGelu),
        std::vector<float>(expected.begin() + 5 * shape.out, expected.begin() + 14 * shape.out));
    if (shape.in % 64 == 0 && shape.out % 64 == 0) {
      EXPECT_EQ(2 * (layer.linear.bytes() - 4 * shape.out), float32_bytes - 4 * shape.out);
    }
  }
}

TEST_P(StoredWeightsTest, AreRoundedOnlyOnDemand) {
  const auto& [type, data_type] = GetParam();
  constexpr int64_t kRows = 20;
  Layer layer({200, 60}, kRows);
  layer.linear = Pack(layer, type);
  EXPECT_EQ(layer.linear.plan().weights, type);
  const std::vector<float> rounded = layer.Apply(1, 0, kRows);
  layer.linear = Pack(layer, WeightType::kAuto);
  layer.teams.clear();
  EXPECT_EQ(layer.linear.plan().weights, WeightType::kF32);
  EXPECT_NE(layer.Apply(1, 0, kRows), rounded);
  RoundTo(data_type, layer.weight);
  layer.linear = Pack(layer, WeightType::kF32);
  layer.teams.clear();
  EXPECT_EQ(layer.Apply(1, 0, kRows), rounded);
}

INSTANTIATE_TEST_SUITE_P(Types, StoredWeightsTest,
                         testing::Values(std::pair(WeightType::kBf16, DataType::kBFloat16),
                                         std::pair(WeightType::kF16, DataType::kFloat16)),
                         [](const auto& type) { return std::string(Name(type.param.first)); });

}  // namespace gemm_test
}  // namespace attendant
