#include "server/rpc/call/open_streams.h"

#include <utility>

namespace attendant::server {

void OpenStreams::Add(const void* stream, std::function<void()> drain) {
  {
    absl::MutexLock lock(&mutex_);
    if (!draining_) {
      streams_.emplace(stream, std::move(drain));
      return;
    }
  }
  drain();
}

void OpenStreams::Remove(const void* stream) {
  absl::MutexLock lock(&mutex_);
  streams_.erase(stream);
}

void OpenStreams::Drain() {
  std::map<const void*, std::function<void()>> open;
  {
    absl::MutexLock lock(&mutex_);
    draining_ = true;
    open.swap(streams_);
  }
  for (const auto& [stream, drain] : open) drain();
}

}  // namespace attendant::server
