#include "server/rpc/open_streams.h"

#include "server/rpc/stream_reactor.h"

namespace attendant::server {

void OpenStreams::Add(const std::shared_ptr<StreamReactor>& stream) {
  {
    absl::MutexLock lock(&mutex_);
    streams_.emplace(stream.get(), stream);
    if (!draining_) return;
  }
  stream->Drain();
}

void OpenStreams::Remove(const StreamReactor* stream) {
  absl::MutexLock lock(&mutex_);
  streams_.erase(stream);
}

void OpenStreams::Drain() {
  std::map<const StreamReactor*, std::weak_ptr<StreamReactor>> open;
  {
    absl::MutexLock lock(&mutex_);
    draining_ = true;
    open = streams_;
  }
  for (const auto& [key, weak] : open) {
    if (const auto stream = weak.lock()) stream->Drain();
  }
}

}  // namespace attendant::server
