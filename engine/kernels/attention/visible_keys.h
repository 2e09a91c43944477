// VisibleKeys: the range of keys that a block of queries can see. Other keys are masked for all of
// the queries.
#pragma once

#include <cstdint>

#include "engine/kernels/attention/attention_block.h"

namespace attendant {

// The keys [begin, end) of a sequence.
struct KeyRange {
  bool empty() const { return begin >= end; }

  int64_t begin;
  int64_t end;
};

// The mask of one sequence by causality, window and pattern. Queries and keys are indices of tokens
// in the sequence. Block indices count the blocks of the pattern from the first key on. The
// AttentionBlock must outlive it.
class VisibleKeys {
 public:
  explicit VisibleKeys(const AttentionBlock& block);

  // Whether every query sees every key.
  bool all() const { return block_.window == 0 && !block_.causal; }

  // Returns the smallest range that includes all keys in `within` that any of the queries [first,
  // first + count) sees. Keys inside the range may be masked for all of the queries.
  KeyRange Of(int64_t first, int64_t count, KeyRange within) const;

  // Returns keys in `within` that all of these queries see without additional terms. With a
  // pattern, the range may not include all such keys.
  KeyRange SeenByAll(int64_t first, int64_t count, KeyRange within) const;

  // The block index of a key or a query of the sequence.
  int64_t BlockOfKey(int64_t i) const {
    return (block_.KeyPosition(i) - first_position_) / block_.pattern.block;
  }
  int64_t BlockOfQuery(int64_t i) const {
    return (block_.QueryPosition(i) - first_position_) / block_.pattern.block;
  }
  bool IsGlobal(int64_t block_index) const { return HasGlobal(block_index, block_index); }

 private:
  // Whether any of the blocks [first, last] is global.
  bool HasGlobal(int64_t first, int64_t last) const {
    const AttentionPattern& pattern = block_.pattern;
    return (pattern.first_global > 0 && first < pattern.first_global) ||
           (pattern.last_global > 0 && last >= block_count_ - pattern.last_global) ||
           pattern.listed.HasGlobal(first, last);
  }
  // Returns the number of keys before the block with this index.
  int64_t KeysBefore(int64_t block_index) const;

  const AttentionBlock& block_;
  int64_t first_position_;
  int64_t block_count_;  // number of blocks of the pattern in the sequence
};

}  // namespace attendant
