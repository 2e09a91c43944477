#include "engine/kernels/seen_keys.h"

#include <algorithm>

namespace attendant {

SeenKeys::SeenKeys(const AttentionBlock& block)
    : block_(block),
      first_position_(block.keys.rows > 0 ? block.KeyPosition(0) : 0),
      places_(block.keys.rows > 0 ? PlaceOfKey(block.keys.rows - 1) + 1 : 0) {}

int64_t SeenKeys::KeysBefore(int64_t place) const {
  const int64_t position = first_position_ + place * block_.pattern.block;
  const auto& positions = block_.key_positions;
  if (positions.empty()) return std::clamp<int64_t>(position, 0, block_.keys.rows);
  return std::lower_bound(positions.begin(), positions.end(), position) - positions.begin();
}

KeyRange SeenKeys::Of(int64_t first, int64_t count, KeyRange within) const {
  if (all()) return within;
  const int64_t lowest = PlaceOfQuery(block_.first_query + first);
  const int64_t highest = PlaceOfQuery(block_.first_query + first + count - 1);
  if (IsGlobal(lowest) || IsGlobal(highest)) return within;
  const KeyRange parts[] = {
      {0, KeysBefore(block_.pattern.first_global)},
      {KeysBefore(lowest - block_.window), KeysBefore(highest + block_.window + 1)},
      {KeysBefore(places_ - block_.pattern.last_global), block_.keys.rows}};
  KeyRange hull = {within.end, within.begin};
  for (const KeyRange& part : parts) {
    const KeyRange seen = {std::max(part.begin, within.begin), std::min(part.end, within.end)};
    if (seen.empty()) continue;
    hull.begin = std::min(hull.begin, seen.begin);
    hull.end = std::max(hull.end, seen.end);
  }
  return hull;
}

}  // namespace attendant
