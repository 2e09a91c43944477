#include "engine/model/attention_pattern.h"

#include <algorithm>
#include <utility>

namespace attendant {

BlockLists::BlockLists(std::vector<BlockPair> pairs, std::vector<int64_t> globals) {
  if (pairs.empty() && globals.empty()) return;
  std::sort(pairs.begin(), pairs.end());
  std::sort(globals.begin(), globals.end());
  lists_ = std::make_shared<const Lists>(Lists{std::move(pairs), std::move(globals)});
}

absl::Span<const BlockPair> BlockLists::pairs() const {
  if (lists_ == nullptr) return {};
  return lists_->pairs;
}

absl::Span<const int64_t> BlockLists::globals() const {
  if (lists_ == nullptr) return {};
  return lists_->globals;
}

absl::Span<const BlockPair> BlockLists::Between(const BlockPair& first,
                                                const BlockPair& end) const {
  const absl::Span<const BlockPair> all = pairs();
  const auto from = std::lower_bound(all.begin(), all.end(), first);
  return all.subspan(from - all.begin(), std::lower_bound(from, all.end(), end) - from);
}

bool BlockLists::HasGlobal(int64_t first, int64_t last) const {
  const absl::Span<const int64_t> all = globals();
  const auto next = std::lower_bound(all.begin(), all.end(), first);
  return next != all.end() && *next <= last;
}

bool BlockLists::operator==(const BlockLists& other) const {
  return lists_ == other.lists_ || (pairs() == other.pairs() && globals() == other.globals());
}

}  // namespace attendant
