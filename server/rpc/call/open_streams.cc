#include "server/rpc/call/open_streams.h"

#include <algorithm>
#include <utility>
#include <vector>

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

int64_t OpenStreams::ShedUncharged() {
  constexpr int64_t kLeast = int64_t{1} << 20;
  std::vector<std::shared_ptr<OpenStream>> open;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [key, weak] : streams_) {
      if (auto stream = weak.lock()) open.push_back(std::move(stream));
    }
  }
  std::vector<int64_t> uncharged;
  int64_t most = 0;
  for (const auto& stream : open) {
    uncharged.push_back(stream->UnchargedBytes());
    most = std::max(most, uncharged.back());
  }
  int64_t shed = 0;
  for (size_t i = 0; i < open.size(); ++i) {
    if (uncharged[i] < std::max(kLeast, most / 2)) continue;
    open[i]->Shed();
    ++shed;
  }
  return shed;
}

}  // namespace attendant::server
