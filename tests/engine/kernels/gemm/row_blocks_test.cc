#include "engine/kernels/gemm/panel.h"
#include "gmock/gmock.h"

namespace attendant {
namespace row_blocks_test {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<TileKernel> Tiles(const std::vector<int64_t>& sizes) {
  std::vector<TileKernel> tiles;
  for (const int64_t rows : sizes) tiles.push_back({rows, {}, {}});
  return tiles;
}

// Returns {rows of the tile, begin, rows} of each block.
std::vector<std::vector<int64_t>> Cut(const std::vector<int64_t>& sizes, int64_t rows,
                                      int64_t limit) {
  const std::vector<TileKernel> tiles = Tiles(sizes);
  const RowBlocks blocks(tiles, rows, limit);
  std::vector<std::vector<int64_t>> cut;
  for (int64_t i = 0; i < blocks.count(); ++i) {
    const RowBlock block = blocks.block(i);
    cut.push_back({block.kernel->rows, block.begin, block.rows});
  }
  return cut;
}

using Block = std::vector<int64_t>;

TEST(RowBlocksTest, TakesTheLargestTilesFirst) {
  EXPECT_THAT(Cut({256, 64, 16}, 608, 256),
              ElementsAre(Block{256, 0, 256}, Block{256, 256, 256}, Block{64, 512, 64},
                          Block{16, 576, 16}, Block{16, 592, 16}));
  EXPECT_THAT(Cut({256, 64, 16}, 0, 256), IsEmpty());
}

TEST(RowBlocksTest, KeepsToTheLimitIfItCan) {
  EXPECT_THAT(Cut({256, 64, 16}, 272, 64),
              ElementsAre(Block{64, 0, 64}, Block{64, 64, 64}, Block{64, 128, 64},
                          Block{64, 192, 64}, Block{16, 256, 16}));
  EXPECT_THAT(Cut({256}, 256, 64), ElementsAre(Block{256, 0, 256}));
}

TEST(RowBlocksTest, FillsTheSmallestTilePartlyAtTheEnd) {
  EXPECT_THAT(Cut({256, 64}, 336, 256),
              ElementsAre(Block{256, 0, 256}, Block{64, 256, 64}, Block{64, 320, 16}));
  EXPECT_THAT(Cut({64}, 16, 64), ElementsAre(Block{64, 0, 16}));
}

TEST(RowBlocksTest, EndsWithTheShortestTileThatHasRoom) {
  const std::vector<int64_t> sizes = {256, 64, 16, 8, 4};
  for (const auto& [rows, tile] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 4}, {4, 4}, {5, 8}, {8, 8}, {9, 16}, {16, 16}}) {
    EXPECT_THAT(Cut(sizes, rows, 256), ElementsAre(Block{tile, 0, rows}));
    EXPECT_THAT(Cut(sizes, 16 + rows, 256), ElementsAre(Block{16, 0, 16}, Block{tile, 16, rows}));
  }
  EXPECT_THAT(Cut({64, 8}, 72, 256), ElementsAre(Block{64, 0, 64}, Block{8, 64, 8}));
}

TEST(RowBlocksTest, CanGoRowByRow) {
  EXPECT_THAT(Cut({1}, 3, 64), ElementsAre(Block{1, 0, 1}, Block{1, 1, 1}, Block{1, 2, 1}));
}

}  // namespace row_blocks_test
}  // namespace attendant
