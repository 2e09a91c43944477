// Panel: some adjacent outputs of a linear layer, with their packed weights. ForBlocks: splits the
// work of a linear layer among a team.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "absl/types/span.h"
#include "engine/base/rounding.h"
#include "engine/base/thread_team.h"
#include "engine/kernels/gemm/product_plan.h"
#include "engine/kernels/gemm/tile_kernel.h"
#include "engine/kernels/row_tiles.h"

namespace attendant {

// Returns the largest number of columns of a row tile that one thread computes, if `threads`
// threads share the panels of `width` columns of a layer with `out` outputs.
inline int64_t ColumnsPerThread(int64_t out, int64_t width, int threads) {
  return CeilDivide(CeilDivide(out, width), threads) * width;
}

// Returns the width of all panels except the last. Wide panels are faster, so it is the largest
// width for which short batches do not leave some threads with a third less work than others.
inline int64_t PanelWidth(int64_t out, int threads) {
  const int64_t panels = CeilDivide(out, kPanelWidth);
  const int64_t widest = RoundUp(CeilDivide(out, panels), kPanelWidthMultiple);
  int64_t best = widest;
  for (int64_t width = widest; width > 0; width -= kPanelWidthMultiple) {
    if (3 * ColumnsPerThread(out, width, threads) <= 2 * ColumnsPerThread(out, best, threads)) {
      best = width;
    }
  }
  return best;
}

// Rows of W in the number format of the products. Part p of row r is dense and starts at data + p *
// part_stride + r * row_stride.
struct WeightRows {
  const char* data;
  int64_t row_stride;
  int64_t part_stride;
};

// The weights of some adjacent columns of y. Does not own them.
struct Panel {
  int64_t begin;  // the first column
  const PanelKernels* kernels;
  // The packed weights of each block of the shape (PanelShape), and oneDNN's view of each. Panels
  // of other implementations do not have the views.
  std::vector<char*> blocks = {};
  std::vector<dnnl::memory> weights = {};
  dnnl::memory bias = {};

  // Sets the panel's memory: `packed` has bytes() bytes, aligned to 64, and `bias_of_columns` has
  // one float per column. Both must outlive the panel.
  void Place(char* packed, float* bias_of_columns);
  // Packs the weights of its columns. `rows` begins at its first row of W. Throws dnnl::error.
  void Pack(const WeightRows& rows);

  int64_t bytes() const { return kernels->shape.blocks() * kernels->block_bytes; }
};

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

// A panel and some rows of a product.
struct ProductBlock {
  const Panel& panel;
  RowBlock rows;
};

// Enumerates the blocks of a product of panels and rows, in two orders.
class ProductBlocks {
 public:
  // `panels` has at least one panel and must outlive this object. All panels except the last have
  // the same kernels. See RowBlocks for `rows` and `limit`.
  ProductBlocks(absl::Span<const Panel> panels, int64_t rows, int64_t limit)
      : panels_(panels),
        rows_(panels.front().kernels->tiles, rows, limit),
        last_rows_(panels.back().kernels->tiles, rows, limit),
        per_panel_(rows_.count()),
        alike_(static_cast<int64_t>(panels.size()) -
               (panels.back().kernels == panels.front().kernels ? 0 : 1)) {}

  int64_t count() const {
    const bool all_alike = alike_ == static_cast<int64_t>(panels_.size());
    return alike_ * per_panel_ + (all_alike ? 0 : last_rows_.count());
  }

  // Returns block `index` in [0, count()), in the order of all rows of a panel, then the next
  // panel.
  ProductBlock PanelByPanel(int64_t index) const {
    const int64_t panel = std::min(index / per_panel_, alike_);
    if (panel == alike_) return Last(index);
    return {panels_[panel], rows_.block(index - panel * per_panel_)};
  }

  // Returns block `index` in the order of all panels of a row tile, then the next row tile. If the
  // last panel has other kernels, and so other tiles, its blocks are at the end.
  ProductBlock RowsByRows(int64_t index) const {
    if (index >= alike_ * per_panel_) return Last(index);
    return {panels_[index % alike_], rows_.block(index / alike_)};
  }

 private:
  ProductBlock Last(int64_t index) const {
    return {panels_.back(), last_rows_.block(index - alike_ * per_panel_)};
  }

  absl::Span<const Panel> panels_;
  RowBlocks rows_;
  RowBlocks last_rows_;
  int64_t per_panel_;
  int64_t alike_;  // number of panels with the kernels of the first
};

// Calls function(worker, panel, block) for every block of rows of every panel. If `share_rows`,
// splits the work by rows; see GemmWorkspace::ShareRowsFrom.
template <class Function>
void ForBlocks(const ThreadTeam& team, absl::Span<const Panel> panels, int64_t rows,
               bool share_rows, const Function& function) {
  // Large tiles are used only if there are still enough items to balance the threads.
  constexpr int64_t kItemsPerThread = 4, kSmallTileRows = 64;
  const int64_t largest_tile = panels.front().kernels->tiles.front().rows;
  const int64_t items = rows / largest_tile * static_cast<int64_t>(panels.size());
  const int64_t limit = items >= kItemsPerThread * team.size() ? largest_tile : kSmallTileRows;
  if (!share_rows) {
    // In this order the threads share one panel of the weight in the caches.
    const ProductBlocks blocks(panels, rows, limit);
    return team.ParallelFor(blocks.count(), [&](int worker, int64_t item) {
      const ProductBlock block = blocks.PanelByPanel(item);
      function(worker, block.panel, block.rows);
    });
  }
  const auto blocks_of = [&](int share) {
    return ProductBlocks(panels, ShareOfRows(rows, share, team.size()).rows, limit);
  };
  team.ParallelForShares([&](int share) { return blocks_of(share).count(); },
                         [&](int worker, int share, int64_t item) {
                           ProductBlock block = blocks_of(share).RowsByRows(item);
                           block.rows.begin += ShareOfRows(rows, share, team.size()).begin;
                           function(worker, block.panel, block.rows);
                         });
}

}  // namespace attendant
