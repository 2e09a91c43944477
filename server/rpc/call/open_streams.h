// Registry of open streams.
#pragma once

#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace attendant::server {

class OpenStream {
 public:
  // Stops reading messages, and ends with UNAVAILABLE once accepted ones are answered. Thread-safe.
  virtual void Drain() = 0;

 protected:
  ~OpenStream() = default;
};

// Thread-safe; outlives the streams.
class OpenStreams {
 public:
  void Add(const std::shared_ptr<OpenStream>& stream);
  void Remove(const OpenStream* stream);

  // Drains open streams, and streams added later at once.
  void Drain();

 private:
  absl::Mutex mutex_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<const OpenStream*, std::weak_ptr<OpenStream>> streams_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::server
