// SeriesCache, a cache of metric series by key.
#pragma once

#include <functional>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace attendant::server {

// Creates a series on the first use of its key, and later returns it without looking it up by
// labels. References are valid during the cache's lifetime. Thread-safe.
template <typename Key, typename Series>
class SeriesCache {
 public:
  // `key` may be a tuple of references.
  template <typename AnyKey, typename Make>
  const Series& Get(const AnyKey& key, Make make) {
    {
      absl::ReaderMutexLock lock(&mutex_);
      if (const auto found = series_.find(key); found != series_.end()) return found->second;
    }
    absl::MutexLock lock(&mutex_);
    return series_.try_emplace(Key(key), make()).first->second;
  }

 private:
  absl::Mutex mutex_;
  // A map, because its entries do not move.
  std::map<Key, Series, std::less<>> series_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::server
