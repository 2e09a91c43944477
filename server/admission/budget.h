// An amount of something scarce, divided fairly among the peers that ask for it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"

namespace attendant::server {

// Purposes for which a part of a budget is held, counted apart for the metrics.
enum class HeldFor : int8_t { kReceiving, kRequest, kAnswer, kRegistered };
inline constexpr size_t kPurposes = 4;

struct BudgetLimits {
  int64_t total = 0;
  int64_t reserve = 0;  // what a peer without competitors leaves free for the next one
};

struct BudgetCounts {
  std::array<int64_t, kPurposes> held = {};  // by HeldFor
  int64_t waiting = 0;                       // claims that wait
  int64_t taken = 0;                         // holds that there have ever been

  int64_t held_for(HeldFor purpose) const { return held[static_cast<size_t>(purpose)]; }
  int64_t all() const;
};

// Admission has three of them: slots, streams, and bytes of memory.
//
// Thread-safe. Holds and waiting claims may outlive it.
//
// Invariants:
// - What is held never exceeds the total.
// - A peer that holds something gets more only while it holds no more than is free, or, if nobody
//   else holds anything, while the reserve stays free. A peer that holds nothing gets whatever is
//   free. Holds of no peer (an empty name) are in nobody's share.
// - Waiting claims are met in the order in which they were made. Only those whose peer has its
//   share are passed over; a small claim never overtakes a larger one that merely lacks room, so no
//   claim starves. Every waiting claim is either met exactly once or withdrawn.
class Budget {
 public:
  class Impl;

  enum class Answer {
    kTaken,
    kNoRoom,
    kShare,  // the peer has its share
    kNever   // more than the total, or negative
  };

  struct Claim {
    std::string peer;
    int64_t amount = 0;
    HeldFor purpose = HeldFor::kRequest;
  };

  // A part of the budget, or nothing. Movable; one thread at a time. The destructor gives it back.
  class Hold {
   public:
    Hold() = default;
    ~Hold() { Release(); }
    Hold(Hold&& other) noexcept;
    Hold& operator=(Hold&& other) noexcept;

    bool empty() const { return budget_ == nullptr; }
    int64_t amount() const { return amount_; }
    // Changes what is held, and for which purpose. Less is always taken. If more is not, everything
    // stays as it was. A hold of nothing, which belongs to no budget, stays so: kTaken.
    // `exempt` bytes of the peer's other holds do not count towards its share.
    Answer Change(int64_t amount, HeldFor purpose, int64_t exempt = 0);
    // Moves up to `amount` to another hold, which holds nothing or some of the same budget. If all
    // is moved, this is a hold of nothing. Gives nothing back. Throws std::bad_alloc if `to` holds
    // nothing.
    void Give(int64_t amount, Hold& to);
    void Release();
    // Gives back all that is held now, but calls `ready` of no waiting claim before this hold is
    // released. For threads that must not run other calls.
    void Vacate();

   private:
    friend class Impl;
    std::shared_ptr<Impl> budget_;
    std::string peer_;
    int64_t amount_ = 0;
    HeldFor purpose_ = HeldFor::kRequest;
  };

  // A claim that waits, or has been met already. Its destructor withdraws the claim: `ready` is not
  // called afterwards. If `ready` is running on another thread at that moment, the destructor waits
  // until it has returned, so do not destroy a pending claim while holding a lock that its `ready`
  // takes. `ready` itself may destroy its pending claim.
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
  // Returns false, and changes nothing, if more than the new total is held, or is waited for by one
  // claim.
  bool SetLimits(BudgetLimits limits);

  // Puts what is claimed into `hold`, which must be empty, or says why it cannot be had now.
  // `exempt` as in Hold::Change.
  Answer TryTake(const Claim& claim, Hold& hold, int64_t exempt = 0);

  // Passes a hold of what is claimed to `ready`: before this function returns if that can be had
  // and no earlier claim waits for room, otherwise as soon as it can.
  //
  // A `ready` that had to wait runs on the thread that made the room, inside a call that gave
  // something back. The calls run one at a time: if another `ready` is running then, this one runs
  // after it on the same thread. No lock is held during the call, so `ready` may call everything
  // here. It must be quick and must not throw.
  //
  // Returns null, and never calls `ready`, if the answer would be kNever.
  using Ready = std::function<void(Hold)>;
  std::unique_ptr<Pending> Await(Claim claim, Ready ready);

  // Waits until nothing is held, but at most for `timeout`. Returns what still is.
  int64_t AwaitIdle(absl::Duration timeout) const;

  BudgetCounts counts() const;
  int64_t held_by(const std::string& peer) const;

 private:
  const std::shared_ptr<Impl> impl_;
};

}  // namespace attendant::server
