#include "engine/kernels/gemm/kernel_table.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/kernels/isa.h"
#include "engine/kernels/row_tiles.h"
#include "gmock/gmock.h"

namespace attendant {
namespace kernel_table_test {

using testing::IsEmpty;
using testing::StartsWith;

TEST(FindPanelKernelsTest, HoldsEachShapeOnce) {
  const PanelShape shape{.in = 24, .width = 16, .k_block = 24};
  const PanelKernels& first = FindPanelKernels(shape);
  EXPECT_EQ(&first, &FindPanelKernels(shape));
  PanelShape other = shape;
  other.width = 32;
  EXPECT_NE(&first, &FindPanelKernels(other));
  other = shape;
  other.k_block = 12;
  EXPECT_NE(&first, &FindPanelKernels(other));
  EXPECT_THAT(first.tiles, testing::Not(IsEmpty()));
}

// oneDNN has one fast kernel, for AVX-512 and newer, which it names "brg…". Other kernels pack
// their operands anew in each call, which no test of results would notice.
TEST(FindPanelKernelsTest, UsesTheFastKernelWhereTheCpuHasIt) {
  const bool has_avx512 = EffectiveIsa().substr(0, 6) == "avx512" || HasAmxUnits();
  const testing::Matcher<std::string> expected = StartsWith(has_avx512 ? "brg" : "");
  std::vector<onednn::DataType> elements = {onednn::DataType::f32};
  if (has_avx512 && HasBf16Units()) elements.push_back(onednn::DataType::bf16);
  if (has_avx512 && EffectiveIsa() != "avx512") elements.push_back(onednn::DataType::s8);
  for (const onednn::DataType element : elements) {
    const bool is_int8 = element == onednn::DataType::s8;
    for (const auto& [in, k_block] : {std::pair{768, 768}, {3072, 3072}, {3072, 768}, {384, 384}}) {
      if (is_int8 && k_block != in) continue;
      for (const int64_t width : {64, 128, 192}) {
        const PanelKernels& kernels = FindPanelKernels({.in = in,
                                                        .width = width,
                                                        .k_block = k_block,
                                                        .element = element,
                                                        .has_bias = !is_int8});
        for (const TileKernel& tile : kernels.tiles) {
          EXPECT_THAT(tile.first.implementation, expected)
              << in << " by " << width << ", " << tile.rows << " rows";
          if (k_block == in) continue;
          EXPECT_THAT(tile.next.implementation, expected)
              << in << " by " << width << ", " << tile.rows << " rows, added";
        }
      }
    }
  }
}

// Without such a block, weights of 16 bits would be kept in float32.
TEST(FindPanelKernelsTest, FindsTheSumBlockOfOneDnnsBits) {
  for (const int64_t in : {1, 24, 100, 384, 768, 1024, 3072}) {
    for (const int64_t width : {16, 64, 192}) {
      const PanelKernels& kernels = FindPanelKernels({.in = in,
                                                      .width = width,
                                                      .k_block = in,
                                                      .gemm = Gemm::kVector,
                                                      .stored = WeightType::kBf16,
                                                      .like_onednn = true});
      EXPECT_GT(kernels.sum_block, 0) << in << " by " << width;
    }
  }
}

TEST(FindPanelKernelsTest, SaysWhetherAllSizesAgree) {
  for (const int64_t block : {256, 128}) {
    const PanelKernels& kernels = FindPanelKernels({.in = 256, .width = 64, .k_block = block});
    const auto& tiles = kernels.tiles;
    EXPECT_EQ(kernels.all_agree, std::count_if(tiles.begin(), tiles.end(), [](const auto& tile) {
                                   return tile.rows >= kRowTile;
                                 }) == 3);
  }
}

TEST(FindPanelKernelsTest, RefusesWhatOneDnnRefuses) {
  for (int call = 0; call < 2; ++call) {
    EXPECT_THROW(FindPanelKernels({.in = -1, .width = 16, .k_block = -1}), dnnl::error) << call;
  }
}

}  // namespace kernel_table_test
}  // namespace attendant
