#include "server/rpc/call/open_streams.h"

namespace attendant::server {

void OpenStreams::Add(const std::shared_ptr<OpenStream>& stream) {
  {
    absl::MutexLock lock(&mutex_);
    streams_.emplace(stream.get(), stream);
    if (!draining_) return;
  }
  stream->Drain();
}

void OpenStreams::Remove(const OpenStream* stream) {
  absl::MutexLock lock(&mutex_);
  streams_.erase(stream);
}

void OpenStreams::Drain() {
  std::map<const OpenStream*, std::weak_ptr<OpenStream>> open;
  {
    absl::MutexLock lock(&mutex_);
    draining_ = true;
    open.swap(streams_);
  }
  for (const auto& [key, weak] : open) {
    if (const auto stream = weak.lock()) stream->Drain();
  }
}

}  // namespace attendant::server
