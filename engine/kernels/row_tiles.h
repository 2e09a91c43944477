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

// Returns one of `shares` nearly equal parts, cut where a tile of `tile` rows begins.
inline RowShare ShareOfRows(int64_t rows, int share, int shares, int64_t tile = kRowTile) {
  const int64_t tiles = CeilDivide(rows, tile);
  const int64_t begin = tiles * share / shares * tile;
  const int64_t end = std::min(rows, tiles * (share + 1) / shares * tile);
  return {begin, end - begin};
}

// The tiles of a batch that has too few rows for each thread to get kRowTile of them. The least
// work that is worth the hand-over.
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

}  // namespace attendant
