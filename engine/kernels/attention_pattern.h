// Which keys a query sees through a window and beyond it.
#pragma once

#include <cstdint>

namespace attendant {

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
  int64_t full_up_to = 0;  // in sequences of up to so many positions all see all

  bool operator==(const AttentionPattern&) const = default;
};

}  // namespace attendant
