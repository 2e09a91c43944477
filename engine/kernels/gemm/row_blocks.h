// Splits the rows of a batch into tiles for which there are kernels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "engine/base/rounding.h"
#include "engine/kernels/gemm/tile_kernel.h"
#include "engine/kernels/row_tiles.h"

namespace attendant {

// The rows that one kernel computes: the size of its tile, or fewer in the last block.
struct RowBlock {
  const TileKernel* kernel;
  int64_t begin;
  int64_t rows;
};

// The tiles that `rows` are split into, the largest first. No tile is larger than `limit`, unless
// there is no smaller one. Tiles of fewer than kRowTile rows are only for the last block: the
// smallest that has room for it.
class RowBlocks {
 public:
  // `tiles` has at least one tile, is sorted by descending rows, and must outlive this object.
  RowBlocks(const std::vector<TileKernel>& tiles, int64_t rows, int64_t limit)
      : rows_(rows), last_(std::prev(tiles.end())), end_(tiles.end()) {
    while (last_ != tiles.begin() && last_->rows < kRowTile) --last_;
    first_ = std::find_if(tiles.begin(), last_,
                          [limit](const TileKernel& tile) { return tile.rows <= limit; });
  }

  int64_t count() const {
    int64_t count = 0, left = rows_;
    for (auto tile = first_; tile != last_; ++tile) {
      count += left / tile->rows;
      left %= tile->rows;
    }
    return count + CeilDivide(left, last_->rows);
  }

  // Returns block `index` in [0, count()).
  RowBlock block(int64_t index) const {
    int64_t begin = 0;
    for (auto tile = first_; tile != last_; ++tile) {
      const int64_t count = (rows_ - begin) / tile->rows;
      if (index < count) return {&*tile, begin + index * tile->rows, tile->rows};
      index -= count;
      begin += count * tile->rows;
    }
    begin += index * last_->rows;
    const int64_t count = std::min(last_->rows, rows_ - begin);
    Tile smallest = last_;
    while (std::next(smallest) != end_ && std::next(smallest)->rows >= count) ++smallest;
    return {&*smallest, begin, count};
  }

 private:
  using Tile = std::vector<TileKernel>::const_iterator;
  int64_t rows_;
  Tile first_;
  Tile last_;
  Tile end_;
};

}  // namespace attendant
