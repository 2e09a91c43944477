// ResultCache, which keeps results so that nothing is computed twice.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/cache/cache_key.h"
#include "server/metrics/cache_counts.h"

namespace attendant::server {

// Thread-safe. Invariant: the entries, with all that it takes to keep them, have at most
// `most_bytes`. Those that were used least recently make room for new ones. A result that Find
// has returned outlives its entry.
class ResultCache {
 public:
  using Result = std::shared_ptr<const std::string>;

  // Upper bound of the bytes of an entry without its result: its node, its place in the table while
  // the table grows, and the allocator's overhead.
  static constexpr int64_t kEntryBytes = 256;

  explicit ResultCache(int64_t most_bytes) : most_bytes_(most_bytes) {}
  // Returns null for no bytes.
  static std::unique_ptr<ResultCache> Make(int64_t most_bytes) {
    return most_bytes == 0 ? nullptr : std::make_unique<ResultCache>(most_bytes);
  }

  CacheKey KeyOf(const KeySource& source) const { return keys_.Make(source.bytes()); }

  // Returns null if there is none.
  Result Find(CacheKind kind, const CacheKey& key);
  // Keeps a result, unless it is there already or is too large. Throws std::bad_alloc, and then has
  // not changed anything.
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
  Entries entries_ ABSL_GUARDED_BY(mutex_);  // the one that was used last comes first
  // Abseil's tables are broken after an allocation has failed.
  std::unordered_map<CacheKey, Entries::iterator, HashOfKey> by_key_ ABSL_GUARDED_BY(mutex_);
  CacheCounts counts_ ABSL_GUARDED_BY(mutex_);
};

// The part of a cache that a client sees: its own results, so that the time of a response does not
// reveal what other clients have sent.
struct ClientCache {
  ResultCache* cache = nullptr;  // null: there is none
  std::string client = {};       // as the server tells clients apart
};

}  // namespace attendant::server
