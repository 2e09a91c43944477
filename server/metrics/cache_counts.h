// Counts of the result cache (server/cache/result_cache.h).
#pragma once

#include <array>
#include <cstdint>
#include <iterator>

namespace attendant::server {

// Kinds of results, counted separately.
enum class CacheKind : uint8_t {
  kVectors,  // a sequence's results of a model
  kTokens    // a text's token ids
};
inline constexpr const char* kCacheKinds[] = {"vectors", "tokens"};

struct CacheCounts {
  struct Lookups {
    int64_t hits = 0;
    int64_t misses = 0;
  };
  std::array<Lookups, std::size(kCacheKinds)> lookups = {};  // by CacheKind, since the start
  int64_t entries = 0;
  int64_t bytes = 0;
};

}  // namespace attendant::server
