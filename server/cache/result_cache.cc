#include "server/cache/result_cache.h"

#include <iterator>
#include <utility>

namespace attendant::server {

ResultCache::Result ResultCache::Find(CacheKind kind, const CacheKey& key) {
  absl::MutexLock lock(&mutex_);
  CacheCounts::Lookups& lookups = counts_.lookups[static_cast<size_t>(kind)];
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) {
    ++lookups.misses;
    return nullptr;
  }
  ++lookups.hits;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->result;
}

void ResultCache::Add(const CacheKey& key, Result result) {
  const int64_t bytes = BytesOf(*result);
  if (bytes > most_bytes_) return;
  Entries added, removed;  // freed without the lock
  added.push_front({key, std::move(result)});
  absl::MutexLock lock(&mutex_);
  if (!by_key_.try_emplace(key, added.begin()).second) return;
  entries_.splice(entries_.begin(), added);
  counts_.bytes += bytes;
  while (counts_.bytes > most_bytes_) {
    const auto last = std::prev(entries_.end());
    counts_.bytes -= BytesOf(*last->result);
    by_key_.erase(last->key);
    removed.splice(removed.begin(), entries_, last);
  }
  counts_.entries = static_cast<int64_t>(by_key_.size());
}

CacheCounts ResultCache::counts() const {
  absl::MutexLock lock(&mutex_);
  return counts_;
}

}  // namespace attendant::server
