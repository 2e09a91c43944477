#include "engine/kernels/attention/seen_keys.h"

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
  if (HasGlobal(lowest, highest)) return within;
  KeyRange hull = {within.end, within.begin};
  const auto add = [&](int64_t first_place, int64_t last_place) {
    const KeyRange seen = {std::max(KeysBefore(first_place), within.begin),
                           std::min(KeysBefore(last_place + 1), within.end)};
    if (seen.empty()) return;
    hull.begin = std::min(hull.begin, seen.begin);
    hull.end = std::max(hull.end, seen.end);
  };
  const AttentionPattern& pattern = block_.pattern;
  add(0, pattern.first_global - 1);
  add(lowest - block_.window, highest + block_.window);
  add(places_ - pattern.last_global, places_ - 1);
  for (const int64_t place : pattern.listed.globals()) {
    if (place >= places_) break;
    add(place, place);
  }
  for (const BlockPair& pair : pattern.listed.Between({lowest, 0}, {highest + 1, 0})) {
    add(pair.key, pair.key);
  }
  return hull;
}

}  // namespace attendant
