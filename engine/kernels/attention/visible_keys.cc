#include "engine/kernels/attention/visible_keys.h"

#include <algorithm>

namespace attendant {

VisibleKeys::VisibleKeys(const AttentionBlock& block)
    : block_(block),
      first_position_(block.keys.rows > 0 ? block.KeyPosition(0) : 0),
      block_count_(block.keys.rows > 0 ? BlockOfKey(block.keys.rows - 1) + 1 : 0) {}

int64_t VisibleKeys::KeysBefore(int64_t block_index) const {
  const int64_t position = first_position_ + block_index * block_.pattern.block;
  const auto& positions = block_.key_positions;
  if (positions.empty()) return std::clamp<int64_t>(position, 0, block_.keys.rows);
  return std::lower_bound(positions.begin(), positions.end(), position) - positions.begin();
}

KeyRange VisibleKeys::Of(int64_t first, int64_t count, KeyRange within) const {
  if (block_.causal) within.end = std::min(within.end, block_.first_query + first + count);
  if (block_.window == 0 || within.empty()) return within;
  const int64_t lowest = BlockOfQuery(block_.first_query + first);
  const int64_t highest = BlockOfQuery(block_.first_query + first + count - 1);
  if (HasGlobal(lowest, highest)) return within;
  KeyRange hull = {within.end, within.begin};
  const auto add = [&](int64_t first_block, int64_t last_block) {
    const KeyRange visible = {std::max(KeysBefore(first_block), within.begin),
                              std::min(KeysBefore(last_block + 1), within.end)};
    if (visible.empty()) return;
    hull.begin = std::min(hull.begin, visible.begin);
    hull.end = std::max(hull.end, visible.end);
  };
  const AttentionPattern& pattern = block_.pattern;
  add(0, pattern.first_global - 1);
  add(lowest - block_.window, highest + block_.window);
  add(block_count_ - pattern.last_global, block_count_ - 1);
  for (const int64_t block_index : pattern.listed.globals()) {
    if (block_index >= block_count_) break;
    add(block_index, block_index);
  }
  for (const BlockPair& pair : pattern.listed.Between({lowest, 0}, {highest + 1, 0})) {
    add(pair.key, pair.key);
  }
  return hull;
}

KeyRange VisibleKeys::SeenByAll(int64_t first, int64_t count, KeyRange within) const {
  if (block_.causal) within.end = std::min(within.end, block_.first_query + first + 1);
  if (block_.window == 0) return within;
  if (block_.pattern != AttentionPattern()) return {within.begin, within.begin};
  const int64_t lowest = BlockOfQuery(block_.first_query + first);
  const int64_t highest = BlockOfQuery(block_.first_query + first + count - 1);
  return {std::max(within.begin, KeysBefore(highest - block_.window)),
          std::min(within.end, KeysBefore(lowest + block_.window + 1))};
}

}  // namespace attendant
