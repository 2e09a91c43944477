#ifndef ATTENDANT_SERVER_METRICS_SERIES_CACHE_H_
#define ATTENDANT_SERVER_METRICS_SERIES_CACHE_H_

#include <functional>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace attendant::server {

// Series by some key, made when they are first asked for and then never looked up by their labels
// again. Thread-safe.
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
  std::map<Key, Series, std::less<>> series_
      ABSL_GUARDED_BY(mutex_);  // whose entries stay in place
};

}  // namespace attendant::server

#endif  // ATTENDANT_SERVER_METRICS_SERIES_CACHE_H_
