// BpeMerges, the merges of byte-pair encoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace attendant::text {

// A symbol of a piece, and the bytes that it stands for.
struct BpeSymbol {
  uint32_t id;
  uint32_t bytes;
};

// Reusable memory for merging.
struct MergeScratch {
  struct Waiting {
    uint32_t rank, place, id;
  };
  struct Link {
    uint32_t before, after;
  };
  std::vector<Waiting> waiting;
  std::vector<Link> links;
};

// A table from pairs of symbols to merged symbols. Immutable and thread-safe after the last Add.
class BpeMerges {
 public:
  static constexpr uint32_t kNoRank = 0xFFFFFFFF;

  struct Merge {
    uint32_t rank = kNoRank;
    uint32_t id = 0;
  };

  explicit BpeMerges(size_t most_merges);

  // A pair that is added again gets its last rank.
  void Add(uint32_t left, uint32_t right, const Merge& merge);

  // Merges the pair with the lowest rank, leftmost first, until there is none, in n·log(n) time for
  // n symbols.
  void Apply(std::vector<BpeSymbol>& symbols, MergeScratch& scratch) const;

 private:
  struct Slot {
    uint64_t pair = kEmpty;
    Merge merge;
  };
  static constexpr uint64_t kEmpty = ~uint64_t{0};

  Merge Find(uint32_t left, uint32_t right) const;
  size_t SlotOf(uint64_t pair) const;
  void ApplyToFew(std::vector<BpeSymbol>& symbols) const;
  void ApplyToMany(std::vector<BpeSymbol>& symbols, MergeScratch& scratch) const;

  std::vector<Slot> slots_;  // a power of two
  int shift_;
};

}  // namespace attendant::text
