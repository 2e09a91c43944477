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
        if (waiting.request.amount > limits.total) return false;
      }
      limits_ = limits;
    }
    MeetWaiting();
    return true;
  }

  Answer TryTake(const ReservationRequest& request, Reservation& reservation, int64_t exempt) {
    absl::MutexLock lock(&mutex_);
    const Answer answer = MayTake(request.peer, request.amount, /*own=*/exempt);
    if (answer == Answer::kTaken) reservation = Take(request);
    return answer;
  }

  std::unique_ptr<Pending> Await(ReservationRequest request, Ready ready) {
    Peers peer;
    if (!request.peer.empty()) peer.emplace(request.peer, 0);
    std::unique_ptr<Pending> pending;
    {
      absl::MutexLock lock(&mutex_);
      if (request.amount < 0 || request.amount > limits_.total) return nullptr;
      pending.reset(new Pending(shared_from_this(), ++last_id_));
      waiting_.emplace(last_id_, Waiting{std::move(request), std::move(ready), std::move(peer)});
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
    MeetWaiting();  // the withdrawn request may have blocked later ones
  }

  Answer Change(Reservation& reservation, int64_t amount, HeldFor purpose, int64_t exempt) {
    const bool less = amount < reservation.amount_;
    {
      absl::MutexLock lock(&mutex_);
      const int64_t more = amount - reservation.amount_;
      if (more > 0 || amount < 0) {
        const Answer answer = amount < 0 || amount > limits_.total
                                  ? Answer::kNever
                                  : MayTake(reservation.peer_, more, reservation.amount_ + exempt);
        if (answer != Answer::kTaken) return answer;
      }
      Count(reservation.peer_, more);
      CountFor(reservation.purpose_, -reservation.amount_);
      CountFor(purpose, amount);
      reservation.amount_ = amount;
      reservation.purpose_ = purpose;
    }
    if (less) MeetWaiting();
    return Answer::kTaken;
  }

  void Give(Reservation& from, int64_t amount, Reservation& to) {
    if (to.empty()) {
      to.peer_ = from.peer_;
      to.amount_ = 0;
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

  void Vacate(Reservation& reservation) {
    absl::MutexLock lock(&mutex_);
    Count(reservation.peer_, -reservation.amount_);
    CountFor(reservation.purpose_, -reservation.amount_);
    reservation.amount_ = 0;
  }

  void GiveBack(Reservation& reservation) {
    Vacate(reservation);
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

  // Has all the memory that it takes to meet the request.
  struct Waiting {
    ReservationRequest request;
    Ready ready;
    Peers peer;  // its peer, which may hold nothing yet
  };

  // `own`: the amount in the requester's reservation, part of its peer's total.
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

  Reservation Take(ReservationRequest request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Reservation reservation;
    reservation.peer_ = std::move(request.peer);
    reservation.amount_ = request.amount;
    reservation.purpose_ = request.purpose;
    Count(reservation.peer_, request.amount);
    CountFor(request.purpose, request.amount);
    ++counts_.taken;
    reservation.budget_ = shared_from_this();  // last: what comes before may throw
    return reservation;
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

  // Meets waiting requests as far as that is possible, oldest first. Only one thread does so at a
  // time: another thread, or a `ready` that makes room itself, returns at once and leaves the room
  // to that thread. This preserves the order of requests, and the stack does not grow.
  void MeetWaiting() {
    Reservation reservation;
    while (Ready ready = StartNext(reservation)) {
      std::exchange(ready, nullptr)(std::move(reservation));
      absl::MutexLock lock(&mutex_);
      running_ = kNone;
    }
  }

  // Allocates nothing, so that no request waits for want of memory when all is given back.
  Ready StartNext(Reservation& reservation) noexcept {
    absl::MutexLock lock(&mutex_);
    return running_ == kNone ? StartOldest(reservation) : nullptr;
  }

  Ready StartOldest(Reservation& reservation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (auto next = waiting_.begin(); next != waiting_.end(); ++next) {
      ReservationRequest& request = next->second.request;
      if (!IsInShare(request.peer, request.amount, /*own=*/0)) continue;
      if (request.amount > limits_.total - held_) return nullptr;
      if (request.amount > 0) peers_.merge(next->second.peer);
      reservation = Take(std::move(request));
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
  Peers peers_ ABSL_GUARDED_BY(mutex_);          // peers with reservations
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = kNone;
  std::map<uint64_t, Waiting> waiting_ ABSL_GUARDED_BY(mutex_);  // by id, thus in order of request
  uint64_t running_ ABSL_GUARDED_BY(mutex_) = kNone;             // id of the `ready` that runs
  std::thread::id running_on_ ABSL_GUARDED_BY(mutex_);
};

Budget::Reservation& Budget::Reservation::operator=(Reservation&& other) noexcept {
  if (this == &other) return *this;
  Release();
  budget_ = std::move(other.budget_);
  peer_ = std::move(other.peer_);
  amount_ = other.amount_;
  purpose_ = other.purpose_;
  return *this;
}

Budget::Answer Budget::Reservation::Change(int64_t amount, HeldFor purpose, int64_t exempt) {
  return budget_ == nullptr ? Answer::kTaken : budget_->Change(*this, amount, purpose, exempt);
}

void Budget::Reservation::Give(int64_t amount, Reservation& to) {
  if (budget_ == nullptr || amount <= 0) return;
  budget_->Give(*this, std::min(amount, amount_), to);
  if (amount_ == 0) budget_.reset();
}

void Budget::Reservation::Vacate() {
  if (budget_ != nullptr) budget_->Vacate(*this);
}

void Budget::Reservation::Release() {
  if (budget_ == nullptr) return;
  // Moved out first: what waits may run inside, and may destroy the owner of this reservation.
  Reservation gone = std::move(*this);
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
Budget::Answer Budget::TryTake(const ReservationRequest& request, Reservation& reservation,
                               int64_t exempt) {
  return impl_->TryTake(request, reservation, exempt);
}
std::unique_ptr<Budget::Pending> Budget::Await(ReservationRequest request, Ready ready) {
  return impl_->Await(std::move(request), std::move(ready));
}
int64_t Budget::AwaitIdle(absl::Duration timeout) const { return impl_->AwaitIdle(timeout); }
BudgetCounts Budget::counts() const { return impl_->counts(); }
int64_t Budget::held_by(const std::string& peer) const { return impl_->held_by(peer); }

}  // namespace attendant::server
