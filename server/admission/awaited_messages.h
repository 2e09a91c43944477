// AwaitedMessages, the small messages that the server is waiting for.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace attendant::server {

// Health checks must work on a full server, so receiving their messages needs no reservation. If
// too many messages are awaited, the oldest call of the client with the most is given up.
// Well-behaved clients send the message right after the headers.
//
// Thread-safe; outlives its places.
class AwaitedMessages {
  using Id = std::pair<std::string, uint64_t>;  // the client and a number, oldest first

 public:
  // Ends the call. Called at most once, on any thread and without locks, possibly while the place
  // is being destroyed.
  using GiveUp = std::function<void()>;

  class Place {
   public:
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    friend class AwaitedMessages;
    Place(AwaitedMessages& messages, Id id) : messages_(messages), id_(std::move(id)) {}
    AwaitedMessages& messages_;
    const Id id_;
  };

  explicit AwaitedMessages(size_t most) : most_(most) {}

  std::unique_ptr<Place> Add(const std::string& caller, GiveUp give_up);

 private:
  // Returns null if the message has been evicted.
  GiveUp Take(const Id& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  GiveUp TakeOldestOfGreediest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t most_;
  absl::Mutex mutex_;
  uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<Id, GiveUp> awaited_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace attendant::server
