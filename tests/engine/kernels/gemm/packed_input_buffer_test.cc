#include "engine/kernels/gemm/packed_input_buffer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/kernels/gemm/gemm.h"
#include "engine/kernels/gemm/number_format.h"
#include "engine/kernels/norm/norm.h"
#include "gmock/gmock.h"
#include "tests/support/random_values.h"

namespace attendant {
namespace packed_input_buffer_test {

constexpr int64_t kMostRows = 304;
constexpr int kWorkers = 3;

std::vector<PackedInputLayout> Layouts() {
  std::vector<PackedInputLayout> layouts;
  for (const ComputeType type : {ComputeType::kBf16x3, ComputeType::kBf16, ComputeType::kInt8}) {
    for (const bool emulate : {false, true}) {
      const ComputeMode mode{type, emulate};
      for (const int64_t width : {5, 256, 312}) layouts.push_back({mode, width, width});
      if (RoundsElementwise(mode)) layouts.push_back({mode, 312, 104});
    }
  }
  return layouts;
}

std::string NameOf(const testing::TestParamInfo<PackedInputLayout>& info) {
  const auto& [mode, in, k_block] = info.param;
  return std::string(Name(mode.type)) + (mode.emulate ? "Emulated" : "") + std::to_string(in) +
         "By" + std::to_string(k_block);
}

class PackedInputBufferTest : public testing::TestWithParam<PackedInputLayout> {
 protected:
  // The previous content is not zero.
  PackedInputBufferTest() { WriteAll(Random(kMostRows, 9), Begin(buffer_, kMostRows)); }

  PackedInput Begin(PackedInputBuffer& buffer, int64_t rows) const {
    buffer.Reserve(layout_, PaddedRows(rows));
    return buffer.Begin(layout_, rows);
  }

  std::vector<float> Random(int64_t rows, uint32_t seed) const {
    return RandomValues(rows * width_, seed, 3.0f);
  }

  void WriteAll(const std::vector<float>& x, const PackedInput& packed) const {
    for (int64_t r = 0; r * width_ < static_cast<int64_t>(x.size()); ++r) {
      packed.WriteRows(0, r, {&x[r * width_], 1, width_, width_});
    }
  }

  // Returns everything that products read of the rows from `first` on.
  std::string BytesOf(const PackedInputView& packed, int64_t first, int64_t rows) const {
    const int64_t parts = InputParts(layout_.mode);
    const int64_t bytes = layout_.k_block * InputElementBytes(layout_.mode) / parts;
    std::string read;
    for (int64_t r = first; r < first + rows; ++r) {
      for (int64_t block = 0; block < width_ / layout_.k_block * parts; ++block) {
        read.append(packed.row(block, r), bytes);
      }
      if (layout_.mode.type != ComputeType::kInt8) continue;
      read.append(reinterpret_cast<const char*>(&packed.scales[r]), sizeof(float));
    }
    return read;
  }

  const PackedInputLayout layout_ = GetParam();
  const int64_t width_ = layout_.in;
  PackedInputBuffer buffer_{kWorkers};
};

INSTANTIATE_TEST_SUITE_P(Layouts, PackedInputBufferTest, testing::ValuesIn(Layouts()), NameOf);

// The ways in which rows are packed while they are computed.
using Maker = std::function<void(const ThreadTeam& team, const PreparedRows& y)>;

TEST_P(PackedInputBufferTest, RowsPackedWhenComputedEqualRowsPackedAfterwards) {
  const std::vector<float> gamma = RandomValues(width_, 3, 2.0f), beta = RandomValues(width_, 4);
  for (const int64_t rows : {1, 16, 37, 300}) {
    std::vector<float> input = Random(rows, 1);
    input[width_ / 2] = INFINITY;
    const std::vector<float> other = Random(rows, 2);
    const MatrixView<const float> x = ViewOf(std::as_const(input), rows, width_);
    const MatrixView<const float> z = ViewOf(other, rows, width_);
    std::vector<Maker> makers = {
        [&](const ThreadTeam& team, const PreparedRows& y) { Multiply(team, x, z, y); }};
    for (const NormKind kind : {NormKind::kLayer, NormKind::kRms, NormKind::kAffine}) {
      const LayerNormWeights weights = {gamma, beta, 1e-5f, kind};
      makers.push_back(
          [=](const ThreadTeam& team, const PreparedRows& y) { LayerNorm(team, x, weights, y); });
      makers.push_back([=](const ThreadTeam& team, const PreparedRows& y) {
        AddLayerNorm(team, x, z, weights, y);
      });
    }
    for (size_t i = 0; i < makers.size(); ++i) {
      std::vector<float> alone(input.size());
      makers[i](ThreadTeam(1), ViewOf(alone, rows, width_));
      PackedInputBuffer afterwards(1);
      const PackedInput after = Begin(afterwards, rows);
      WriteAll(alone, after);
      for (const int team : {1, kWorkers}) {
        std::vector<float> y(PaddedRows(rows) * width_, -7.0f);
        const PreparedRows made = {ViewOf(y, PaddedRows(rows), width_), Begin(buffer_, rows)};
        makers[i](ThreadTeam(team), made);
        ASSERT_EQ(std::memcmp(y.data(), alone.data(), alone.size() * sizeof(float)), 0);
        ASSERT_EQ(std::count(y.begin() + rows * width_, y.end(), -7.0f),
                  (PaddedRows(rows) - rows) * width_);
        ASSERT_EQ(BytesOf(*made.packed.Find(layout_), 0, rows),
                  BytesOf(*after.Find(layout_), 0, rows))
            << "maker " << i << ", " << rows << " rows, team of " << team;
      }
    }
  }
}

TEST_P(PackedInputBufferTest, ZerosAreBehindTheRows) {
  for (const int64_t rows : {0, 1, 31, 32, 290}) {
    const PackedInput packed = Begin(buffer_, rows);
    const std::string tail = BytesOf(*packed.Find(layout_), rows, PaddedRows(rows) - rows);
    EXPECT_EQ(tail, std::string(tail.size(), '\0'));
    WriteAll(Random(kMostRows, 8), Begin(buffer_, kMostRows));
  }
}

// Some rows at a time, as in a feed-forward block.
TEST_P(PackedInputBufferTest, FromARowOn) {
  const std::vector<float> x = Random(100, 1);
  const PackedInput packed = Begin(buffer_, 100);
  WriteAll(x, packed);
  EXPECT_EQ(BytesOf(*packed.From(16).From(32).Find(layout_), 0, 52),
            BytesOf(*packed.Find(layout_), 48, 52));
  PackedInputBuffer other(1);
  const PackedInput rest = Begin(other, 100);
  WriteAll({x.begin(), x.begin() + 48 * width_}, rest);
  WriteAll({x.begin() + 48 * width_, x.end()}, rest.From(48));
  EXPECT_EQ(BytesOf(*rest.Find(layout_), 0, 100), BytesOf(*packed.Find(layout_), 0, 100));
}

// As in products that round while a block of columns is in the cache.
TEST_P(PackedInputBufferTest, ColumnsMakeUpARowThatIsRoundedElementByElement) {
  if (!RoundsElementwise(layout_.mode)) return;
  const std::vector<float> x = Random(20, 1);
  PackedInputBuffer whole(1);
  const PackedInput expected = Begin(whole, 20);
  WriteAll(x, expected);
  const PackedInput packed = Begin(buffer_, 20);
  for (int64_t r = 0; r < 20; ++r) {
    for (int64_t column = 0, count; column < width_; column += count) {
      count = std::min<int64_t>(width_ - column, 1 + (r * 37) % 150);
      packed.WriteRows(1, r, {&x[r * width_ + column], 1, count, count}, column);
    }
  }
  EXPECT_EQ(BytesOf(*packed.Find(layout_), 0, 20), BytesOf(*expected.Find(layout_), 0, 20));
}

TEST_P(PackedInputBufferTest, RowsAreWrittenLikeEachRowAlone) {
  const std::vector<float> x = Random(20, 1);
  const MatrixView<const float> rows = {x.data(), 20, width_, width_};
  PackedInputBuffer whole(1);
  const PackedInput expected = Begin(whole, 20);
  WriteAll(x, expected);
  const PackedInput packed = Begin(buffer_, 20);
  const int64_t cut = RoundsElementwise(layout_.mode) ? width_ / 3 : width_;
  packed.WriteRows(0, 0, rows.Rows(0, 13).Columns(0, cut));
  packed.From(13).WriteRows(1, 0, rows.Rows(13, 7).Columns(0, cut));
  if (cut < width_) packed.WriteRows(1, 0, rows.Columns(cut, width_ - cut), cut);
  EXPECT_EQ(BytesOf(*packed.Find(layout_), 0, 20), BytesOf(*expected.Find(layout_), 0, 20));
}

TEST_P(PackedInputBufferTest, AnInputIsValidForItsLayoutUntilAnotherReplacesIt) {
  const PackedInput first = Begin(buffer_, 10);
  EXPECT_TRUE(first.Find(layout_));
  PackedInputLayout other = layout_;
  other.in = 2 * width_;
  EXPECT_FALSE(first.Find(other));
  other = layout_;
  other.k_block = 1;
  EXPECT_FALSE(first.Find(other));
  other = layout_;
  other.mode.emulate = !other.mode.emulate;
  EXPECT_FALSE(first.Find(other));
  const PackedInput second = Begin(buffer_, 10);
  EXPECT_FALSE(first.Find(layout_));
  EXPECT_FALSE(first.From(5).Find(layout_));
  EXPECT_TRUE(second.Find(layout_));
}

TEST_P(PackedInputBufferTest, AReservedLayoutIsFoundByItsWidth) {
  PackedInputBuffer buffer(2);
  buffer.Reserve(layout_, 32);
  EXPECT_TRUE(buffer.Begin(width_, 32).Find(layout_));
  EXPECT_TRUE(buffer.Begin(width_, 33).empty());
  EXPECT_TRUE(buffer.Begin(2 * width_, 32).empty());
  buffer.Reserve(layout_, 48);
  EXPECT_TRUE(buffer.Begin(width_, 33).Find(layout_));
}

TEST(PackedInputBufferOfFloatsTest, HoldsNothing) {
  const PackedInputLayout layout = {{ComputeType::kF32, false}, 8, 8};
  PackedInputBuffer buffer(2);
  buffer.Reserve(layout, 1000);
  EXPECT_EQ(buffer.bytes(), 0);
  const PackedInput packed = buffer.Begin(layout, 1000);
  const std::vector<float> x(8, 1.0f);
  packed.WriteRows(0, 999, {x.data(), 1, 8, 8});
  EXPECT_FALSE(packed.Find(layout));
  EXPECT_FALSE(PackedInput().From(3).Find(layout));
}

}  // namespace packed_input_buffer_test
}  // namespace attendant
