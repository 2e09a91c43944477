#include "engine/kernels/row_tiles.h"

#include <atomic>
#include <vector>

#include "gmock/gmock.h"

namespace attendant {
namespace row_tiles_test {

TEST(RowSharesTest, CoverTheRowsInOrderInNearlyEqualParts) {
  for (const int shares : {1, 2, 3, 4, 7}) {
    for (int64_t rows = 0; rows < 300; ++rows) {
      int64_t next = 0;
      for (int i = 0; i < shares; ++i) {
        const RowShare share = ShareOfRows(rows, i, shares);
        ASSERT_EQ(share.begin, next) << rows;
        ASSERT_EQ(share.begin % kRowTile, 0) << rows;
        ASSERT_LT(std::abs(share.rows - rows / shares), 2 * kRowTile) << rows;
        next = share.begin + share.rows;
      }
      ASSERT_EQ(next, rows);
    }
  }
}

// Norms work on the kept rows, and products on the padded ones.
TEST(RowSharesTest, BeginAtTheSameRowsWithAndWithoutPadding) {
  for (int64_t rows = 1; rows < 300; ++rows) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(ShareOfRows(rows, i, 3).begin, ShareOfRows(PaddedRows(rows), i, 3).begin) << rows;
    }
  }
}

TEST(RowSharesTest, TilesCoverEveryRowOnce) {
  for (const int size : {1, 2, 3, 4}) {
    const ThreadTeam team(size);
    for (const int64_t rows : {0, 1, 16, 17, 64, 333}) {
      std::vector<int> runs(rows, 0);
      ForRowTiles(team, rows, [&](int worker, int64_t begin, int64_t count) {
        EXPECT_GE(worker, 0);
        EXPECT_LT(worker, size);
        EXPECT_LE(count, kRowTile);
        for (int64_t r = begin; r < begin + count; ++r) ++runs[r];
      });
      EXPECT_EQ(runs, std::vector<int>(rows, 1));
    }
  }
}

TEST(RowSharesTest, AShortBatchHasATileForEveryThread) {
  for (const int size : {1, 2, 4, 16}) {
    for (const int64_t rows : {4 * size, 4 * size + 1, 15 * size, 16 * size, 100 * size}) {
      std::atomic<int> tiles = 0;
      ForRowTiles(ThreadTeam(size), rows, [&](int, int64_t, int64_t) { ++tiles; });
      EXPECT_GE(tiles, size) << rows;
    }
  }
}

}  // namespace row_tiles_test
}  // namespace attendant
