// Slots and receiving permits: what a request needs before its body is read.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/time/time.h"

namespace attendant::server {

struct AdmissionLimits {
  int64_t max_inflight = 64;  // slots
  int64_t receive_memory_bytes =
      0;  // bodies being received, together; at least one maximal request
};

struct AdmissionCounts {
  int64_t inflight = 0;         // slots taken
  int64_t receiving_bytes = 0;  // permits held
  int64_t waiting = 0;          // requests waiting for a permit
};

// Thread-safe. Slots, permits and wishes may outlive it.
//
// Invariants: at every moment inflight <= max_inflight and receiving_bytes <= receive_memory_bytes.
// Permits are granted strictly in order of asking: none overtakes a larger one, so none starves.
// Every wish either gets its permit exactly once or is withdrawn.
class Admission {
 public:
  class Impl;

  // One request in flight; frees its place when destroyed.
  class Slot {
   public:
    ~Slot();
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;

   private:
    friend class Impl;
    explicit Slot(std::shared_ptr<Impl> admission);
    const std::shared_ptr<Impl> admission_;
  };

  // Leave to hold so many bytes of body; gives them back when destroyed.
  class Permit {
   public:
    ~Permit();
    Permit(const Permit&) = delete;
    Permit& operator=(const Permit&) = delete;
    int64_t bytes() const { return bytes_; }

   private:
    friend class Impl;
    Permit(std::shared_ptr<Impl> admission, int64_t bytes);
    const std::shared_ptr<Impl> admission_;
    const int64_t bytes_;
  };

  // A permit asked for. Destroying it withdraws the wish: `ready` is not called afterwards. If
  // `ready` runs on another thread just then, destruction waits until it has returned; so do not
  // destroy a wish with a lock held that its `ready` takes. `ready` itself may destroy the wish.
  class Wish {
   public:
    ~Wish();
    Wish(const Wish&) = delete;
    Wish& operator=(const Wish&) = delete;

   private:
    friend class Impl;
    Wish(std::shared_ptr<Impl> admission, uint64_t id);
    const std::shared_ptr<Impl> admission_;
    const uint64_t id_;
  };

  explicit Admission(AdmissionLimits limits);
  ~Admission();
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  // A slot for one request, from its headers until its answer has left; null: none is free, or
  // closed.
  std::unique_ptr<Slot> TryTakeSlot();

  // Calls `ready` with a permit for `bytes`: before this returns if there is room and nobody waits,
  // or when room was made, in order of asking. It runs on the thread that made the room, in the
  // destructor of a permit or a wish; or, if another `ready` is running then, after it on its
  // thread, for one runs at a time. No lock is held: it may call everything here. It is quick and
  // never throws. Null, and `ready` is never called, if `bytes` is negative or more than
  // receive_memory_bytes.
  using Ready = std::function<void(std::unique_ptr<Permit>)>;
  std::unique_ptr<Wish> RequestPermit(int64_t bytes, Ready ready);

  // From now on TryTakeSlot gives none: the server drains. Wishes of slots already taken go on.
  void Close();
  bool closed() const;

  // Waits until no slot is taken, for at most `timeout`; returns how many are taken then.
  int64_t AwaitIdle(absl::Duration timeout) const;

  AdmissionCounts counts() const;

 private:
  const std::shared_ptr<Impl> impl_;
};

}  // namespace attendant::server
