// Which keys a block of queries sees.
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

// The window and the pattern of one sequence, by the indices of its tokens. Borrows the block.
class SeenKeys {
 public:
  explicit SeenKeys(const AttentionBlock& block);

  // True if every query sees every key.
  bool all() const { return block_.window == 0; }

  // From the first to the last key of `within` that any of the queries [first, first + count) of
  // the block sees. The keys between may be seen by none.
  KeyRange Of(int64_t first, int64_t count, KeyRange within) const;

  // The block of the pattern that a key, or a query of the sequence, is in.
  int64_t PlaceOfKey(int64_t i) const {
    return (block_.KeyPosition(i) - first_position_) / block_.pattern.block;
  }
  int64_t PlaceOfQuery(int64_t i) const {
    return (block_.QueryPosition(i) - first_position_) / block_.pattern.block;
  }
  bool IsGlobal(int64_t place) const { return HasGlobal(place, place); }

 private:
  // True if one of the places [first, last] is global.
  bool HasGlobal(int64_t first, int64_t last) const {
    const AttentionPattern& pattern = block_.pattern;
    return (pattern.first_global > 0 && first < pattern.first_global) ||
           (pattern.last_global > 0 && last >= places_ - pattern.last_global) ||
           pattern.listed.HasGlobal(first, last);
  }
  // Keys before the place.
  int64_t KeysBefore(int64_t place) const;

  const AttentionBlock& block_;
  int64_t first_position_;
  int64_t places_;  // of the sequence
};

}  // namespace attendant
