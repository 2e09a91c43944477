// The streams that are open now.
#pragma once

#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace attendant::server {

class OpenStream {
 public:
  // Takes no further message, and ends with UNAVAILABLE once what is accepted is answered. Any
  // thread.
  virtual void Drain() = 0;

 protected:
  ~OpenStream() = default;
};

// Thread-safe; outlives the streams.
class OpenStreams {
 public:
  void Add(const std::shared_ptr<OpenStream>& stream);
  void Remove(const OpenStream* stream);

  // Drains those that are open, and at once any that is added later.
  void Drain();

 private:
  absl::Mutex mutex_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<const OpenStream*, std::weak_ptr<OpenStream>> streams_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::server
