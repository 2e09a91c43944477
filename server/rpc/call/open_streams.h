// The streams that are open now.
#pragma once

#include <cstdint>
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

  // Returns how many bytes of a message that it waits for it may hold without being charged for
  // them. Any thread.
  virtual int64_t UnchargedBytes() { return 0; }
  // Ends because of them. If it was told before and has not ended, it is cut off. Any thread.
  virtual void Shed() {}

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

  // Lets those streams end that may hold at least half as much without charge as the one that may
  // hold most does, and at least 1 MiB. Returns their number.
  int64_t ShedUncharged();

 private:
  absl::Mutex mutex_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<const OpenStream*, std::weak_ptr<OpenStream>> streams_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::server
