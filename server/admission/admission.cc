#include "server/admission/admission.h"

#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace attendant::server {

class Admission::Impl : public std::enable_shared_from_this<Impl> {
 public:
  explicit Impl(AdmissionLimits limits) : limits_(limits) {}

  std::unique_ptr<Slot> TryTakeSlot() {
    absl::MutexLock lock(&mutex_);
    if (closed_ || counts_.inflight >= limits_.max_inflight) return nullptr;
    ++counts_.inflight;
    return std::unique_ptr<Slot>(new Slot(shared_from_this()));
  }

  void FreeSlot() {
    absl::MutexLock lock(&mutex_);
    --counts_.inflight;
  }

  std::unique_ptr<PendingPermit> RequestPermit(int64_t bytes, Ready ready) {
    if (bytes < 0 || bytes > limits_.receive_memory_bytes) return nullptr;
    uint64_t id;
    {
      absl::MutexLock lock(&mutex_);
      id = ++last_id_;
      waiting_.emplace(id, Waiting{bytes, std::move(ready)});
    }
    GrantWaiting();
    return std::unique_ptr<PendingPermit>(new PendingPermit(shared_from_this(), id));
  }

  void FreePermit(int64_t bytes) {
    {
      absl::MutexLock lock(&mutex_);
      counts_.receiving_bytes -= bytes;
    }
    GrantWaiting();
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
    GrantWaiting();  // the request withdrawn may have been the one that blocked those behind it
  }

  void Close() {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }

  bool closed() const {
    absl::MutexLock lock(&mutex_);
    return closed_;
  }

  int64_t AwaitIdle(absl::Duration timeout) const {
    const auto idle = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return counts_.inflight == 0; };
    absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(&idle), timeout);
    return counts_.inflight;
  }

  AdmissionCounts counts() const {
    absl::MutexLock lock(&mutex_);
    AdmissionCounts counts = counts_;
    counts.waiting = static_cast<int64_t>(waiting_.size());
    return counts;
  }

 private:
  struct Waiting {
    int64_t bytes;
    Ready ready;
  };

  // Grants permits as far as there is room, oldest request first. Only one thread grants at a time:
  // another thread, or a `ready` that makes room itself, returns at once and leaves the room to the
  // thread that is granting. This preserves the order of requests, and the stack does not grow.
  void GrantWaiting() {
    while (std::optional<Waiting> granted = StartNext()) {
      std::exchange(granted->ready, nullptr)(
          std::unique_ptr<Permit>(new Permit(shared_from_this(), granted->bytes)));
      absl::MutexLock lock(&mutex_);
      running_ = kNone;
    }
  }

  std::optional<Waiting> StartNext() {
    absl::MutexLock lock(&mutex_);
    if (running_ != kNone || waiting_.empty()) return std::nullopt;
    auto oldest = waiting_.begin();
    if (oldest->second.bytes > limits_.receive_memory_bytes - counts_.receiving_bytes) {
      return std::nullopt;
    }
    counts_.receiving_bytes += oldest->second.bytes;
    running_ = oldest->first;
    running_on_ = std::this_thread::get_id();
    std::optional<Waiting> next(std::move(oldest->second));
    waiting_.erase(oldest);
    return next;
  }

  void AwaitReturn(uint64_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (running_ != id || running_on_ == std::this_thread::get_id()) return;
    const auto returned = [this, id]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return running_ != id; };
    mutex_.Await(absl::Condition(&returned));
  }

  static constexpr uint64_t kNone = 0;
  const AdmissionLimits limits_;

  mutable absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  AdmissionCounts counts_ ABSL_GUARDED_BY(mutex_);  // `waiting` is not maintained here
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = kNone;
  std::map<uint64_t, Waiting> waiting_ ABSL_GUARDED_BY(mutex_);  // by id, thus in order of request
  uint64_t running_ ABSL_GUARDED_BY(mutex_) = kNone;             // id of the `ready` that runs
  std::thread::id running_on_ ABSL_GUARDED_BY(mutex_);
};

Admission::Slot::Slot(std::shared_ptr<Impl> admission) : admission_(std::move(admission)) {}
Admission::Slot::~Slot() { admission_->FreeSlot(); }

Admission::Permit::Permit(std::shared_ptr<Impl> admission, int64_t bytes)
    : admission_(std::move(admission)), bytes_(bytes) {}
Admission::Permit::~Permit() { admission_->FreePermit(bytes_); }

Admission::PendingPermit::PendingPermit(std::shared_ptr<Impl> admission, uint64_t id)
    : admission_(std::move(admission)), id_(id) {}
Admission::PendingPermit::~PendingPermit() { admission_->Withdraw(id_); }

Admission::Admission(AdmissionLimits limits) : impl_(std::make_shared<Impl>(limits)) {}
Admission::~Admission() = default;
std::unique_ptr<Admission::Slot> Admission::TryTakeSlot() { return impl_->TryTakeSlot(); }
std::unique_ptr<Admission::PendingPermit> Admission::RequestPermit(int64_t bytes, Ready ready) {
  return impl_->RequestPermit(bytes, std::move(ready));
}
void Admission::Close() { impl_->Close(); }
bool Admission::closed() const { return impl_->closed(); }
int64_t Admission::AwaitIdle(absl::Duration timeout) const { return impl_->AwaitIdle(timeout); }
AdmissionCounts Admission::counts() const { return impl_->counts(); }

}  // namespace attendant::server
