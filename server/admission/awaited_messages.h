// AwaitedMessages, the small messages whose calls have begun and which have not arrived.
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

// A health check must be answered even on a full server, so its message waits for no room: where
// there are too many, the caller that has most of them loses its oldest. One that means well has
// its message here within a moment.
//
// Thread-safe; outlives its places.
class AwaitedMessages {
 public:
  // Ends the call. Called at most once, on any thread and without locks; it may come when the place
  // is being given back.
  using GiveUp = std::function<void()>;

  class Place {
   public:
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    friend class AwaitedMessages;
    Place(AwaitedMessages& messages, std::string caller)
        : messages_(messages), caller_(std::move(caller)) {}
    AwaitedMessages& messages_;
    const std::string caller_;
    uint64_t id_ = 0;
  };

  explicit AwaitedMessages(size_t most) : most_(most) {}

  std::unique_ptr<Place> Add(const std::string& caller, GiveUp give_up);

 private:
  using OfCaller = std::map<uint64_t, GiveUp>;  // by id, thus the oldest first

  // Returns null if it is not there, because it had to make room.
  GiveUp Take(const std::string& caller, uint64_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  GiveUp TakeOldestOfGreediest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t most_;
  absl::Mutex mutex_;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, OfCaller> callers_ ABSL_GUARDED_BY(mutex_);  // none of them is empty
};

}  // namespace attendant::server
