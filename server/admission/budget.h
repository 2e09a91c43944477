// Budget, a limited resource shared fairly among peers.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"

namespace attendant::server {

// The purpose of a reservation. The metrics count each purpose separately.
enum class HeldFor : int8_t { kReceiving, kRequest, kAnswer, kRegistered };
inline constexpr size_t kPurposes = 4;

struct BudgetLimits {
  int64_t total = 0;
  int64_t reserve = 0;  // left free for the next peer by one without competitors
};

struct BudgetCounts {
  std::array<int64_t, kPurposes> held = {};  // by HeldFor
  int64_t waiting = 0;                       // waiting requests
  int64_t taken = 0;                         // reservations ever made

  int64_t held_for(HeldFor purpose) const { return held[static_cast<size_t>(purpose)]; }
  int64_t all() const;
};

// Admission uses three budgets: slots, streams, and bytes of memory.
//
// Thread-safe. Reservations and waiting requests may outlive it.
//
// Invariants:
// - Reservations never exceed the total.
// - A peer with reservations may take more only while it holds no more than is free or, if no
//   other peer holds anything, while the reserve stays free. A peer without reservations may take
//   whatever is free. Reservations without a peer (an empty name) are in no peer's share.
// - Waiting requests are met in the order in which they were made. Only requests of peers that have
//   their share are passed over; a small request never overtakes a larger one that merely lacks
//   room, so that no request starves. Every waiting request is either met exactly once or
//   withdrawn.
class Budget {
 public:
  class Impl;

  enum class Answer {
    kTaken,
    kNoRoom,
    kShare,  // the peer already has its share
    kNever   // more than the total, or negative
  };

  struct ReservationRequest {
    std::string peer;
    int64_t amount = 0;
    HeldFor purpose = HeldFor::kRequest;
  };

  // A part of the budget, or empty. Movable; not thread-safe. The destructor releases it.
  class Reservation {
   public:
    Reservation() = default;
    ~Reservation() { Release(); }
    Reservation(Reservation&& other) noexcept = default;
    Reservation& operator=(Reservation&& other) noexcept;

    bool empty() const { return budget_ == nullptr; }
    int64_t amount() const { return empty() ? 0 : amount_; }
    // Changes the amount and purpose. Decreases always succeed; if an increase fails, nothing
    // changes. An empty reservation, which belongs to no budget, stays empty and returns kTaken.
    // `exempt` bytes of the peer's other reservations do not count towards its share.
    Answer Change(int64_t amount, HeldFor purpose, int64_t exempt = 0);
    // Moves up to `amount` to `to`, which is empty or of the same budget. Moving everything empties
    // this reservation. Releases nothing to the budget. Throws std::bad_alloc if `to` is empty.
    void Give(int64_t amount, Reservation& to);
    void Release();
    // Releases the amount, but calls no `ready` of waiting requests before the reservation is
    // destroyed or released. For threads that must not run other calls.
    void Vacate();

   private:
    friend class Impl;
    std::shared_ptr<Impl> budget_;
    // Unspecified if there is no budget.
    std::string peer_;
    int64_t amount_ = 0;
    HeldFor purpose_ = HeldFor::kRequest;
  };

  // A reservation request that is waiting or has been met. Its destructor withdraws the request:
  // `ready` is not called afterwards. If `ready` is running on another thread, the destructor waits
  // for it to return, so do not destroy a pending request while holding a lock that its `ready`
  // takes. `ready` itself may destroy its pending request.
  class Pending {
   public:
    ~Pending();
    Pending(const Pending&) = delete;
    Pending& operator=(const Pending&) = delete;

   private:
    friend class Budget;
    Pending(std::shared_ptr<Impl> budget, uint64_t id);
    const std::shared_ptr<Impl> budget_;
    const uint64_t id_;
  };

  explicit Budget(BudgetLimits limits);
  ~Budget();
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  int64_t total() const;
  // Returns false, and changes nothing, if the reservations or a single waiting request exceed the
  // new total.
  bool SetLimits(BudgetLimits limits);

  // Takes the request into the empty `reservation`, or returns why it cannot be taken now. For
  // `exempt`, see Reservation::Change.
  Answer TryTake(const ReservationRequest& request, Reservation& reservation, int64_t exempt = 0);

  // Passes a reservation for the request to `ready`: before this function returns if it can be met
  // and no earlier request is waiting for room, otherwise as soon as it can.
  //
  // A `ready` that had to wait runs on the thread that made room, inside the call that released a
  // reservation. Calls run one at a time: if another `ready` is running, this one runs after it on
  // the same thread. No lock is held during the call, so `ready` may call any function of Budget.
  // It must be quick and must not throw.
  //
  // Returns null, and never calls `ready`, if the result would be kNever.
  using Ready = std::function<void(Reservation)>;
  std::unique_ptr<Pending> Await(ReservationRequest request, Ready ready);

  // Waits until nothing is held, at most for `timeout`. Returns the amount still held.
  int64_t AwaitIdle(absl::Duration timeout) const;

  BudgetCounts counts() const;
  int64_t held_by(const std::string& peer) const;

 private:
  const std::shared_ptr<Impl> impl_;
};

}  // namespace attendant::server
