// The streams that are open now.
#pragma once

#include <map>
#include <memory>
#include <mutex>

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
  std::mutex mutex_;
  bool draining_ = false;
  std::map<const StreamReactor*, std::weak_ptr<StreamReactor>> streams_;
};

}  // namespace attendant::server
