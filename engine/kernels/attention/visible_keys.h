// The keys that a block of queries can see, as ranges: what lies outside them is masked for all.
#pragma once

#include <cstdint>

#include "engine/kernels/attention/attention_block.h"

namespace attendant {

// Keys [begin, end) of the sequence.
struct KeyRange {
  bool empty() const { return begin >= end; }

  int64_t begin;
  int64_t end;
};

// The mask that causality, the window and the pattern of one sequence make, by the indices of its
// tokens. A
// block index counts the blocks of the pattern from the first key on. Borrows the block.
class VisibleKeys {
 public:
  explicit VisibleKeys(const AttentionBlock& block);

  // True if every query sees every key.
  bool all() const { return block_.window == 0 && !block_.causal; }

  // From the first to the last key of `within` that any of the queries [first, first + count) of
  // the block sees. Keys between these two may be masked for all of the queries.
  KeyRange Of(int64_t first, int64_t count, KeyRange within) const;

  // Keys of `within` that each of these queries sees, without terms of the pattern; perhaps not all
  // of them, where there is a pattern.
  KeyRange SeenByAll(int64_t first, int64_t count, KeyRange within) const;

  // The block index of a key, or of a query, of the sequence.
  int64_t BlockOfKey(int64_t i) const {
    return (block_.KeyPosition(i) - first_position_) / block_.pattern.block;
  }
  int64_t BlockOfQuery(int64_t i) const {
    return (block_.QueryPosition(i) - first_position_) / block_.pattern.block;
  }
  bool IsGlobal(int64_t block_index) const { return HasGlobal(block_index, block_index); }

 private:
  // True if one of the block indices [first, last] is global.
  bool HasGlobal(int64_t first, int64_t last) const {
    const AttentionPattern& pattern = block_.pattern;
    return (pattern.first_global > 0 && first < pattern.first_global) ||
           (pattern.last_global > 0 && last >= block_count_ - pattern.last_global) ||
           pattern.listed.HasGlobal(first, last);
  }
  // Keys before the block with this index.
  int64_t KeysBefore(int64_t block_index) const;

  const AttentionBlock& block_;
  int64_t first_position_;
  int64_t block_count_;  // blocks of the pattern in the sequence
};

}  // namespace attendant
