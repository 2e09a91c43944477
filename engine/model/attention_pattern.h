// The keys that a query sees through a window and beyond it.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"

namespace attendant {

// The queries of one block see the keys of another.
struct BlockPair {
  int64_t query;
  int64_t key;

  auto operator<=>(const BlockPair&) const = default;
};

// Blocks that are listed by their numbers, 0 the first of a sequence; those beyond a sequence's end
// mean nothing to it. Immutable: copies share what they hold.
class BlockLists {
 public:
  BlockLists() = default;  // lists none
  // In any order.
  explicit BlockLists(std::vector<BlockPair> pairs, std::vector<int64_t> globals = {});

  // Ascending, by the query first.
  absl::Span<const BlockPair> pairs() const;
  absl::Span<const int64_t> globals() const;  // ascending

  // The pairs from `first` on that come before `end`.
  absl::Span<const BlockPair> Between(const BlockPair& first, const BlockPair& end) const;
  // True if one of the blocks [first, last] is listed as global.
  bool HasGlobal(int64_t first, int64_t last) const;

  bool operator==(const BlockLists& other) const;

 private:
  struct Lists {
    std::vector<BlockPair> pairs;
    std::vector<int64_t> globals;
  };
  std::shared_ptr<const Lists> lists_;  // null: none
};

// Positions are counted from a sequence's first token, in blocks; a window of w sees the blocks up
// to w blocks from the query's own. Blocks that are global see all and are seen by all. The
// defaults are a window of tokens that nobody is beyond.
struct AttentionPattern {
  int64_t block = 1;         // positions in a block
  int64_t first_global = 0;  // blocks at the beginning of a sequence that are global
  int64_t last_global = 0;   // and at its end
  // How many times more than once the keys of block 0 count to a query that is not global: what the
  // random blocks of BigBird come to without training (Zaheer et al. 2020).
  int64_t first_repeats = 0;
  int64_t full_up_to = 0;  // in sequences of at most this length all tokens see all
  BlockLists listed = {};  // pairs that are seen, and blocks that are global, beside those above

  bool operator==(const AttentionPattern&) const = default;
};

}  // namespace attendant
