#include "server/text/models/bpe_merges.h"

#include <algorithm>
#include <array>

namespace attendant::text {
namespace {

// Up to this many symbols, looking at all pairs for each merge is faster than a heap.
constexpr size_t kFew = 32;
constexpr uint32_t kNoPlace = 0xFFFFFFFF;

// The order in which a heap keeps the least on top.
bool IsLater(const MergeScratch::Waiting& a, const MergeScratch::Waiting& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.place > b.place;
}

}  // namespace

BpeMerges::BpeMerges(size_t most_merges) {
  int bits = 4;
  while ((size_t{1} << bits) < most_merges * 2) ++bits;
  slots_.resize(size_t{1} << bits);
  shift_ = 64 - bits;
}

size_t BpeMerges::SlotOf(uint64_t pair) const {
  size_t slot = pair * 0x9E3779B97F4A7C15 >> shift_;
  while (slots_[slot].pair != pair && slots_[slot].pair != kEmpty) {
    slot = (slot + 1) & (slots_.size() - 1);
  }
  return slot;
}

void BpeMerges::Add(uint32_t left, uint32_t right, const Merge& merge) {
  const uint64_t pair = uint64_t{left} << 32 | right;
  slots_[SlotOf(pair)] = {pair, merge};
}

BpeMerges::Merge BpeMerges::Find(uint32_t left, uint32_t right) const {
  return slots_[SlotOf(uint64_t{left} << 32 | right)].merge;
}

void BpeMerges::Apply(std::vector<BpeSymbol>& symbols, MergeScratch& scratch) const {
  if (symbols.size() <= 1) return;
  if (symbols.size() <= kFew) return ApplyToFew(symbols);
  ApplyToMany(symbols, scratch);
}

void BpeMerges::ApplyToFew(std::vector<BpeSymbol>& symbols) const {
  std::array<Merge, kFew> merges;  // of each symbol with the one after it
  size_t count = symbols.size();
  for (size_t i = 0; i + 1 < count; ++i) merges[i] = Find(symbols[i].id, symbols[i + 1].id);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (merges[i].rank < merges[best].rank) best = i;
    }
    if (merges[best].rank == kNoRank) break;
    symbols[best] = {merges[best].id, symbols[best].bytes + symbols[best + 1].bytes};
    --count;
    for (size_t i = best + 1; i < count; ++i) {
      symbols[i] = symbols[i + 1];
      merges[i - 1] = merges[i];
    }
    if (best > 0) merges[best - 1] = Find(symbols[best - 1].id, symbols[best].id);
    if (best + 1 < count) merges[best] = Find(symbols[best].id, symbols[best + 1].id);
  }
  symbols.resize(count);
}

void BpeMerges::ApplyToMany(std::vector<BpeSymbol>& symbols, MergeScratch& scratch) const {
  auto& waiting = scratch.waiting;
  auto& links = scratch.links;
  waiting.clear();
  links.resize(symbols.size());
  const uint32_t count = static_cast<uint32_t>(symbols.size());
  for (uint32_t i = 0; i < count; ++i) links[i] = {i - 1, i + 1 < count ? i + 1 : kNoPlace};
  const auto find_at = [&](uint32_t place) {
    return Find(symbols[place].id, symbols[links[place].after].id);
  };
  for (uint32_t i = 0; i + 1 < count; ++i) {
    const Merge merge = find_at(i);
    if (merge.rank != kNoRank) waiting.push_back({merge.rank, i, merge.id});
  }
  std::make_heap(waiting.begin(), waiting.end(), IsLater);
  const auto add = [&](uint32_t place) {
    const Merge merge = find_at(place);
    if (merge.rank == kNoRank) return;
    waiting.push_back({merge.rank, place, merge.id});
    std::push_heap(waiting.begin(), waiting.end(), IsLater);
  };
  while (!waiting.empty()) {
    const MergeScratch::Waiting next = waiting.front();
    std::pop_heap(waiting.begin(), waiting.end(), IsLater);
    waiting.pop_back();
    BpeSymbol& symbol = symbols[next.place];
    const uint32_t right = links[next.place].after;
    // Either may have been merged with another one meanwhile.
    if (symbol.bytes == 0 || right == kNoPlace) continue;
    const Merge merge = find_at(next.place);
    if (merge.rank == kNoRank || merge.id != next.id) continue;
    symbol = {next.id, symbol.bytes + symbols[right].bytes};
    symbols[right].bytes = 0;
    links[next.place].after = links[right].after;
    if (links[right].after != kNoPlace) {
      links[links[right].after].before = next.place;
      add(next.place);
    }
    if (links[next.place].before != kNoPlace) add(links[next.place].before);
  }
  symbols.erase(std::remove_if(symbols.begin(), symbols.end(),
                               [](const BpeSymbol& symbol) { return symbol.bytes == 0; }),
                symbols.end());
}

}  // namespace attendant::text
