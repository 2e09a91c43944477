// Admission control: the slot and the receiving permit that a request needs before its body is
// read.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/time/time.h"

namespace attendant::server {

struct AdmissionLimits {
  int64_t max_inflight = 64;  // number of slots
  // Bytes that all request bodies being received may hold together. It must hold at least one
  // request of maximal size, because a permit for more is refused.
  int64_t receive_memory_bytes = 0;
};

struct AdmissionCounts {
  int64_t inflight = 0;         // slots taken
  int64_t receiving_bytes = 0;  // bytes of all permits held
  int64_t waiting = 0;          // requests waiting for a permit
};

// Bounds the number of requests in flight and the memory of the bodies being received.
//
// Thread-safe. Slots, permits and pending permits may outlive it.
//
// Invariants: at every moment inflight <= max_inflight and receiving_bytes <= receive_memory_bytes.
// Permits are granted strictly in the order in which they were requested: a small request never
// overtakes a larger one, so no request starves. Every pending permit is either granted exactly
// once or withdrawn.
class Admission {
 public:
  class Impl;

  // One request in flight. The destructor frees its place.
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

  // The right to hold bytes() of request body. The destructor gives them back.
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

  // A permit that has been requested, and perhaps granted already. Its destructor withdraws the
  // request: `ready` is not called afterwards. If `ready` is running on another thread at that
  // moment, the destructor waits until it has returned, so do not destroy a pending permit while
  // holding a lock that its `ready` takes. `ready` itself may destroy its pending permit.
  class PendingPermit {
   public:
    ~PendingPermit();
    PendingPermit(const PendingPermit&) = delete;
    PendingPermit& operator=(const PendingPermit&) = delete;

   private:
    friend class Impl;
    PendingPermit(std::shared_ptr<Impl> admission, uint64_t id);
    const std::shared_ptr<Impl> admission_;
    const uint64_t id_;
  };

  explicit Admission(AdmissionLimits limits);
  ~Admission();
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  // Takes a slot for one request, which keeps it from its headers until its answer has been sent.
  // Returns null if no slot is free or Close was called.
  std::unique_ptr<Slot> TryTakeSlot();

  // Requests a permit for `bytes` and passes it to `ready`: before this function returns if there
  // is room and no other request waits, otherwise when room has been made, in order of request.
  //
  // A `ready` that had to wait runs on the thread that made the room, inside the destructor of a
  // permit or of a pending permit. The calls run one at a time: if another `ready` is running then,
  // this one runs after it on the same thread. No lock is held during the call, so `ready` may call
  // everything here. It must be quick and must not throw.
  //
  // Returns null, and never calls `ready`, if `bytes` is negative or exceeds receive_memory_bytes.
  using Ready = std::function<void(std::unique_ptr<Permit>)>;
  std::unique_ptr<PendingPermit> RequestPermit(int64_t bytes, Ready ready);

  // Starts draining: TryTakeSlot returns null from now on. Requests that hold a slot already still
  // get their permits.
  void Close();
  bool closed() const;

  // Waits until no slot is taken, but at most for `timeout`. Returns the number of slots that are
  // still taken.
  int64_t AwaitIdle(absl::Duration timeout) const;

  AdmissionCounts counts() const;

 private:
  const std::shared_ptr<Impl> impl_;
};

}  // namespace attendant::server
