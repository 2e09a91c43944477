// ResultCache, a cache of results.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/hash/hash.h"
#include "absl/synchronization/mutex.h"
#include "server/cache/cache_key.h"
#include "server/metrics/cache_counts.h"

namespace attendant::server {

// Thread-safe. Invariant: the entries, including all overhead, take at most `most_bytes`. New
// entries evict the least recently used ones. A result returned by Find outlives its entry.
class ResultCache {
 public:
  using Result = std::shared_ptr<const std::string>;

  // Upper bound of an entry's overhead: its node, its slot in the table while the table grows, and
  // the allocator.
  static constexpr int64_t kEntryBytes = 256;

  explicit ResultCache(int64_t most_bytes) : most_bytes_(most_bytes) {}
  // Returns null for 0 bytes.
  static std::unique_ptr<ResultCache> Make(int64_t most_bytes) {
    return most_bytes == 0 ? nullptr : std::make_unique<ResultCache>(most_bytes);
  }

  CacheKey KeyOf(const KeySource& source) const { return keys_.Make(source.bytes()); }

  // Returns null if there is no such result.
  Result Find(CacheKind kind, const CacheKey& key);
  // Adds a result unless it is present or too large. Throws std::bad_alloc, leaving the cache
  // unchanged.
  void Add(const CacheKey& key, Result result);

  CacheCounts counts() const;

 private:
  struct Entry {
    CacheKey key;
    Result result;
  };
  using Entries = std::list<Entry>;

  static int64_t BytesOf(const std::string& result) {
    return kEntryBytes + static_cast<int64_t>(result.size());
  }

  const int64_t most_bytes_;
  const KeyMaker keys_;
  mutable absl::Mutex mutex_;
  Entries entries_ ABSL_GUARDED_BY(mutex_);  // most recently used first
  // Abseil's tables are broken after a failed allocation.
  std::unordered_map<CacheKey, Entries::iterator, absl::Hash<CacheKey>> by_key_
      ABSL_GUARDED_BY(mutex_);
  CacheCounts counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::server
