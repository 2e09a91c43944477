// The memory that containers use besides their elements'.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace attendant::text {

template <typename T>
size_t HeapBytes(const std::vector<T>& list) {
  return list.capacity() * sizeof(T);
}

inline size_t HeapBytes(const std::string& text) {
  const size_t inside = std::string().capacity();
  return text.capacity() > inside ? text.capacity() + 1 : 0;
}

// The slots of an absl::flat_hash_map, excluding memory owned by keys and values.
template <typename Map>
size_t TableBytes(const Map& map) {
  return map.capacity() * (sizeof(typename Map::value_type) + 1);
}

}  // namespace attendant::text
