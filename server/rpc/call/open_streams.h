// OpenStreams, a registry of open streams.
#pragma once

#include <functional>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace attendant::server {

// Thread-safe; outlives the streams.
class OpenStreams {
 public:
  // `drain` drains the stream, if it still exists. It is called without locks.
  void Add(const void* stream, std::function<void()> drain);
  void Remove(const void* stream);
  // Drains open streams, and streams added later at once.
  void Drain();

 private:
  absl::Mutex mutex_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<const void*, std::function<void()>> streams_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::server
