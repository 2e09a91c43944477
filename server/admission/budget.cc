#include "server/admission/budget.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace attendant::server {

int64_t BudgetCounts::all() const { return std::accumulate(held.begin(), held.end(), int64_t{0}); }

class Budget::Impl : public std::enable_shared_from_this<Impl> {
 public:
  explicit Impl(BudgetLimits limits) : limits_(limits) {}

  int64_t total() const {
    absl::MutexLock lock(&mutex_);
    return limits_.total;
  }

  bool SetLimits(BudgetLimits limits) {
    {
      absl::MutexLock lock(&mutex_);
      if (held_ > limits.total) return false;
      for (const auto& [id, waiting] : waiting_) {
        if (waiting.claim.amount > limits.total) return false;
      }
      limits_ = limits;
    }
    MeetWaiting();
    return true;
  }

  Answer TryTake(const Claim& claim, Hold& hold, int64_t exempt) {
    absl::MutexLock lock(&mutex_);
    const Answer answer = MayTake(claim.peer, claim.amount, /*own=*/exempt);
    if (answer == Answer::kTaken) hold = Take(claim);
    return answer;
  }

  std::unique_ptr<Pending> Await(Claim claim, Ready ready) {
    Peers peer;
    if (!claim.peer.empty()) peer.emplace(claim.peer, 0);
    std::unique_ptr<Pending> pending;
    {
      absl::MutexLock lock(&mutex_);
      if (claim.amount < 0 || claim.amount > limits_.total) return nullptr;
      pending.reset(new Pending(shared_from_this(), ++last_id_));
      waiting_.emplace(last_id_, Waiting{std::move(claim), std::move(ready), std::move(peer)});
    }
    MeetWaiting();
    return pending;
  }

  void Withdraw(uint64_t id) {
    Ready withdrawn;  // destroyed without the lock, because its captures may call this class
    {
      absl::MutexLock lock(&mutex_);
      if (auto pending = waiting_.find(id); pending != waiting_.end()) {
        withdrawn = std::move(pending->second.ready);
        waiting_.erase(pending);
      } else {
        AwaitReturn(id);
        return;
      }
    }
    MeetWaiting();  // the withdrawn claim may have blocked later ones
  }

  Answer Change(Hold& hold, int64_t amount, HeldFor purpose, int64_t exempt) {
    const bool less = amount < hold.amount_;
    {
      absl::MutexLock lock(&mutex_);
      const int64_t more = amount - hold.amount_;
      if (more > 0 || amount < 0) {
        const Answer answer = amount < 0 || amount > limits_.total
                                  ? Answer::kNever
                                  : MayTake(hold.peer_, more, hold.amount_ + exempt);
        if (answer != Answer::kTaken) return answer;
      }
      Count(hold.peer_, more);
      CountFor(hold.purpose_, -hold.amount_);
      CountFor(purpose, amount);
      hold.amount_ = amount;
      hold.purpose_ = purpose;
    }
    if (less) MeetWaiting();
    return Answer::kTaken;
  }

  void Give(Hold& from, int64_t amount, Hold& to) {
    if (to.empty()) {
      to.peer_ = from.peer_;
      to.purpose_ = from.purpose_;
      to.budget_ = shared_from_this();
    }
    absl::MutexLock lock(&mutex_);
    Count(to.peer_, amount);  // first, so that the peer's entry stays
    Count(from.peer_, -amount);
    CountFor(to.purpose_, amount);
    CountFor(from.purpose_, -amount);
    to.amount_ += amount;
    from.amount_ -= amount;
  }

  void Vacate(Hold& hold) {
    absl::MutexLock lock(&mutex_);
    Count(hold.peer_, -hold.amount_);
    CountFor(hold.purpose_, -hold.amount_);
    hold.amount_ = 0;
  }

  void GiveBack(Hold& hold) {
    Vacate(hold);
    MeetWaiting();
  }

  int64_t AwaitIdle(absl::Duration timeout) const {
    const auto idle = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return held_ == 0; };
    absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(&idle), timeout);
    return held_;
  }

  int64_t held_by(const std::string& peer) const {
    absl::MutexLock lock(&mutex_);
    const auto found = peers_.find(peer);
    return found == peers_.end() ? 0 : found->second;
  }

  BudgetCounts counts() const {
    absl::MutexLock lock(&mutex_);
    BudgetCounts counts = counts_;
    counts.waiting = static_cast<int64_t>(waiting_.size());
    return counts;
  }

 private:
  using Peers = std::map<std::string, int64_t>;  // what each holds

  // Has all the memory that it takes to meet the claim.
  struct Waiting {
    Claim claim;
    Ready ready;
    Peers peer;  // its peer, which may hold nothing yet
  };

  // `own`: the amount in the claimant's hold, part of its peer's total.
  Answer MayTake(const std::string& peer, int64_t amount, int64_t own) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (amount < 0 || amount > limits_.total) return Answer::kNever;
    if (amount > limits_.total - held_) return Answer::kNoRoom;
    return IsInShare(peer, amount, own) ? Answer::kTaken : Answer::kShare;
  }

  bool IsInShare(const std::string& peer, int64_t amount, int64_t own) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto found = peers_.find(peer);
    if (found == peers_.end() || found->second <= own) return true;
    const int64_t held = found->second, free = limits_.total - held_;
    const bool alone = held == held_ - unowned_;
    return alone ? amount <= free - limits_.reserve : held <= free;
  }

  Hold Take(Claim claim) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Hold hold;
    hold.peer_ = std::move(claim.peer);
    hold.amount_ = claim.amount;
    hold.purpose_ = claim.purpose;
    Count(hold.peer_, claim.amount);
    CountFor(claim.purpose, claim.amount);
    ++counts_.taken;
    hold.budget_ = shared_from_this();  // last: what comes before may throw
    return hold;
  }

  // Throws std::bad_alloc only if the peer gets something and is not known yet, and then changes
  // nothing.
  void Count(const std::string& peer, int64_t amount) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (amount == 0) return;
    if (peer.empty()) {
      unowned_ += amount;
    } else {
      const auto entry = peers_.try_emplace(peer, 0).first;
      entry->second += amount;
      if (entry->second == 0) peers_.erase(entry);
    }
    held_ += amount;
  }

  void CountFor(HeldFor purpose, int64_t amount) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    counts_.held[static_cast<size_t>(purpose)] += amount;
  }

  // Meets waiting claims as far as that is possible, oldest first. Only one thread does so at a
  // time: another thread, or a `ready` that makes room itself, returns at once and leaves the room
  // to that thread. This preserves the order of claims, and the stack does not grow.
  void MeetWaiting() {
    Hold hold;
    while (Ready ready = StartNext(hold)) {
      std::exchange(ready, nullptr)(std::move(hold));
      absl::MutexLock lock(&mutex_);
      running_ = kNone;
    }
  }

  // Allocates nothing, so that no claim waits for want of memory when all is given back.
  Ready StartNext(Hold& hold) noexcept {
    absl::MutexLock lock(&mutex_);
    return running_ == kNone ? StartOldest(hold) : nullptr;
  }

  Ready StartOldest(Hold& hold) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (auto next = waiting_.begin(); next != waiting_.end(); ++next) {
      Claim& claim = next->second.claim;
      if (!IsInShare(claim.peer, claim.amount, /*own=*/0)) continue;
      if (claim.amount > limits_.total - held_) return nullptr;
      if (claim.amount > 0) peers_.merge(next->second.peer);
      hold = Take(std::move(claim));
      running_ = next->first;
      running_on_ = std::this_thread::get_id();
      Ready ready = std::move(next->second.ready);
      waiting_.erase(next);
      return ready;
    }
    return nullptr;
  }

  void AwaitReturn(uint64_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (running_ != id || running_on_ == std::this_thread::get_id()) return;
    const auto returned = [this, id]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return running_ != id; };
    mutex_.Await(absl::Condition(&returned));
  }

  static constexpr uint64_t kNone = 0;
  mutable absl::Mutex mutex_;
  BudgetLimits limits_ ABSL_GUARDED_BY(mutex_);
  int64_t held_ ABSL_GUARDED_BY(mutex_) = 0;     // in all
  int64_t unowned_ ABSL_GUARDED_BY(mutex_) = 0;  // of that, without a peer
  BudgetCounts counts_ ABSL_GUARDED_BY(mutex_);  // `waiting` is not maintained here
  Peers peers_ ABSL_GUARDED_BY(mutex_);          // that hold something
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = kNone;
  std::map<uint64_t, Waiting> waiting_ ABSL_GUARDED_BY(mutex_);  // by id, thus in order of claim
  uint64_t running_ ABSL_GUARDED_BY(mutex_) = kNone;             // id of the `ready` that runs
  std::thread::id running_on_ ABSL_GUARDED_BY(mutex_);
};

Budget::Hold::Hold(Hold&& other) noexcept
    : budget_(std::move(other.budget_)),
      peer_(std::move(other.peer_)),
      amount_(std::exchange(other.amount_, 0)),
      purpose_(other.purpose_) {}

Budget::Hold& Budget::Hold::operator=(Hold&& other) noexcept {
  if (this == &other) return *this;
  Release();
  budget_ = std::move(other.budget_);
  peer_ = std::move(other.peer_);
  amount_ = std::exchange(other.amount_, 0);
  purpose_ = other.purpose_;
  return *this;
}

Budget::Answer Budget::Hold::Change(int64_t amount, HeldFor purpose, int64_t exempt) {
  return budget_ == nullptr ? Answer::kTaken : budget_->Change(*this, amount, purpose, exempt);
}

void Budget::Hold::Give(int64_t amount, Hold& to) {
  if (budget_ == nullptr || amount <= 0) return;
  budget_->Give(*this, std::min(amount, amount_), to);
  if (amount_ == 0) budget_.reset();
}

void Budget::Hold::Vacate() {
  if (budget_ != nullptr) budget_->Vacate(*this);
}

void Budget::Hold::Release() {
  if (budget_ == nullptr) return;
  // Moved out first: what waits may run inside, and may destroy the owner of this hold.
  Hold gone = std::move(*this);
  const std::shared_ptr<Impl> budget = std::move(gone.budget_);
  budget->GiveBack(gone);
}

Budget::Pending::Pending(std::shared_ptr<Impl> budget, uint64_t id)
    : budget_(std::move(budget)), id_(id) {}
Budget::Pending::~Pending() { budget_->Withdraw(id_); }

Budget::Budget(BudgetLimits limits) : impl_(std::make_shared<Impl>(limits)) {}
Budget::~Budget() = default;
int64_t Budget::total() const { return impl_->total(); }
bool Budget::SetLimits(BudgetLimits limits) { return impl_->SetLimits(limits); }
Budget::Answer Budget::TryTake(const Claim& claim, Hold& hold, int64_t exempt) {
  return impl_->TryTake(claim, hold, exempt);
}
std::unique_ptr<Budget::Pending> Budget::Await(Claim claim, Ready ready) {
  return impl_->Await(std::move(claim), std::move(ready));
}
int64_t Budget::AwaitIdle(absl::Duration timeout) const { return impl_->AwaitIdle(timeout); }
BudgetCounts Budget::counts() const { return impl_->counts(); }
int64_t Budget::held_by(const std::string& peer) const { return impl_->held_by(peer); }

}  // namespace attendant::server
