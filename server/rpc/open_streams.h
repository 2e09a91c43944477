// The streams that are open now.
#pragma once

#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace attendant::server {

class StreamReactor;

// Thread-safe; outlives the streams.
class OpenStreams {
 public:
  void Add(const std::shared_ptr<StreamReactor>& stream);
  void Remove(const StreamReactor* stream);

  // Drains those that are open, and at once any that is added later.
  void Drain();

 private:
  absl::Mutex mutex_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<const StreamReactor*, std::weak_ptr<StreamReactor>> streams_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::server
