// AttentionPattern: the keys that are visible to a query within its window and beyond it.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"

namespace attendant {

// The queries of block `query` see the keys of block `key`.
struct BlockPair {
  int64_t query;
  int64_t key;

  auto operator<=>(const BlockPair&) const = default;
};

// Lists of visible block pairs and of global blocks. Blocks are numbered from 0, the first block of
// a sequence; numbers beyond the end of a sequence have no effect on it. Immutable; copies share
// their lists.
class BlockLists {
 public:
  BlockLists() = default;
  // The arguments may be in any order.
  explicit BlockLists(std::vector<BlockPair> pairs, std::vector<int64_t> globals = {});

  // Sorted by query, then by key.
  absl::Span<const BlockPair> pairs() const;
  // Sorted.
  absl::Span<const int64_t> globals() const;

  // Returns the pairs in [first, end).
  absl::Span<const BlockPair> Between(const BlockPair& first, const BlockPair& end) const;
  // Whether any of the blocks [first, last] is listed as global.
  bool HasGlobal(int64_t first, int64_t last) const;

  bool operator==(const BlockLists& other) const;

 private:
  struct Lists {
    std::vector<BlockPair> pairs;
    std::vector<int64_t> globals;
  };
  std::shared_ptr<const Lists> lists_;  // null if both lists are empty
};

// Positions, counted from the first token of a sequence, are grouped into blocks. A query sees the
// blocks up to `window` (AttentionBlockShape) blocks from its own. Global blocks see all blocks and
// are visible to all. The defaults describe a plain window of tokens.
struct AttentionPattern {
  int64_t block = 1;         // positions per block
  int64_t first_global = 0;  // number of global blocks at the start of a sequence
  int64_t last_global = 0;   // number of global blocks at the end of a sequence
  // How many additional times a query that is not global counts the keys of block 0. The random
  // blocks of BigBird have this effect outside training (Zaheer et al. 2020).
  int64_t first_repeats = 0;
  int64_t full_up_to = 0;  // attention is full in sequences of at most this length
  BlockLists listed = {};  // further visible pairs and global blocks

  bool operator==(const AttentionPattern&) const = default;
};

}  // namespace attendant
