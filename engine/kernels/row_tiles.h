// The tiles that the rows of a batch come in, and how a team shares them: the same way in every
// kernel that goes row by row, so that a worker finds in its caches what it wrote.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/base/rounding.h"
#include "engine/base/thread_team.h"

namespace attendant {

// Rows that any buffer given to ApplyLinear must be a multiple of: T rounded up. The rows beyond T
// must be readable and finite (zeros); what is computed for them is not used.
inline constexpr int64_t kRowTile = 16;
constexpr int64_t PaddedRows(int64_t rows) { return RoundUp(rows, kRowTile); }

struct RowShare {
  int64_t begin;
  int64_t rows;
};

// One of `shares` nearly equal parts, cut where a tile of kRowTile rows begins.
inline RowShare ShareOfRows(int64_t rows, int share, int shares) {
  const int64_t tiles = PaddedRows(rows) / kRowTile;
  const int64_t begin = tiles * share / shares * kRowTile;
  const int64_t end = std::min(rows, tiles * (share + 1) / shares * kRowTile);
  return {begin, end - begin};
}

// function(worker, begin, count) for each tile of the rows: enough work to be worth handing out.
template <class Function>
void ForRowTiles(const ThreadTeam& team, int64_t rows, const Function& function) {
  team.ParallelForShares(
      [&](int share) { return PaddedRows(ShareOfRows(rows, share, team.size()).rows) / kRowTile; },
      [&](int worker, int share, int64_t item) {
        const RowShare own = ShareOfRows(rows, share, team.size());
        const int64_t first = item * kRowTile;
        function(worker, own.begin + first, std::min(kRowTile, own.rows - first));
      });
}

}  // namespace attendant
