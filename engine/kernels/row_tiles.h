// The tiles into which the rows of a batch are cut, and their division among a team. It is the same
// in every kernel that works row by row, so that a worker finds in its caches what it wrote before.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/base/rounding.h"
#include "engine/base/thread_team.h"

namespace attendant {

// Every buffer given to ApplyLinear has a multiple of this number of rows: T rounded up. The rows
// beyond T must be readable and finite (zeros); what is computed for them is not used.
inline constexpr int64_t kRowTile = 16;
constexpr int64_t PaddedRows(int64_t rows) { return RoundUp(rows, kRowTile); }

struct RowShare {
  int64_t begin;
  int64_t rows;
};

// Returns one of `shares` nearly equal parts, cut where a tile of kRowTile rows begins.
inline RowShare ShareOfRows(int64_t rows, int share, int shares) {
  const int64_t tiles = PaddedRows(rows) / kRowTile;
  const int64_t begin = tiles * share / shares * kRowTile;
  const int64_t end = std::min(rows, tiles * (share + 1) / shares * kRowTile);
  return {begin, end - begin};
}

// Calls function(worker, begin, count) for each tile of the rows, which is enough work to be worth
// the hand-over.
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
