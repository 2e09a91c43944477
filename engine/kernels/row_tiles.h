// Splits the rows of a batch into tiles and divides the tiles among a team. All kernels that
// compute row by row split them in the same way, so a worker finds the rows that it wrote in its
// caches.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/base/rounding.h"
#include "engine/base/thread_team.h"

namespace attendant {

// Some kernels read this number of rows at a time, so every input of GemmWorkspace::Apply has
// memory for a multiple of it: T rounded up. The contents of the rows beyond T do not matter.
inline constexpr int64_t kRowTile = 16;
constexpr int64_t PaddedRows(int64_t rows) { return RoundUp(rows, kRowTile); }

struct RowShare {
  int64_t begin;
  int64_t rows;
};

// Splits the rows into `shares` nearly equal parts at multiples of `tile` and returns part `share`.
inline RowShare ShareOfRows(int64_t rows, int share, int shares, int64_t tile = kRowTile) {
  const int64_t tiles = CeilDivide(rows, tile);
  const int64_t begin = tiles * share / shares * tile;
  const int64_t end = std::min(rows, tiles * (share + 1) / shares * tile);
  return {begin, end - begin};
}

// The tile size of a batch with fewer than kRowTile rows per thread. Smaller tiles are not worth
// the cost of a hand-off.
inline constexpr int64_t kSmallRowTile = 4;

// Calls function(worker, begin, count) for each tile of the rows.
template <class Function>
void ForRowTiles(const ThreadTeam& team, int64_t rows, const Function& function) {
  const int64_t tile = rows < kRowTile * team.size() ? kSmallRowTile : kRowTile;
  const auto share_of = [&](int share) { return ShareOfRows(rows, share, team.size(), tile); };
  team.ParallelForShares([&](int share) { return CeilDivide(share_of(share).rows, tile); },
                         [&](int worker, int share, int64_t item) {
                           const RowShare own = share_of(share);
                           const int64_t first = item * tile;
                           function(worker, own.begin + first, std::min(tile, own.rows - first));
                         });
}

// Likewise calls function(worker, row) for each row.
template <class Function>
void ForRows(const ThreadTeam& team, int64_t rows, const Function& function) {
  ForRowTiles(team, rows, [&](int worker, int64_t begin, int64_t count) {
    for (int64_t r = begin; r < begin + count; ++r) function(worker, r);
  });
}

}  // namespace attendant
