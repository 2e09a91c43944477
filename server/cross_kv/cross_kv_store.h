// The store of what is kept for later requests: keys and values of a layer that clients have
// registered for cross-attention, and room for the state that chunks of sequences leave behind.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/matrix_view.h"
#include "server/admission/budget.h"
#include "server/base/clock.h"
#include "server/models/served_model.h"
#include "server/tensors/token_layout.h"

namespace attendant::server {

// The rows that keys and values were made of, and the layer that made them.
struct CrossKvOrigin {
  std::shared_ptr<const ServedModel> model;
  int64_t layer = 0;
  TokenLayout layout;
};

// Bytes that count as held, here and in the server's memory, while the object lives.
// Thread-safe.
class HeldBytes {
 public:
  struct Totals {
    std::atomic<int64_t> bytes = 0;
    std::atomic<int64_t> holders = 0;
  };

  HeldBytes(int64_t bytes, std::shared_ptr<Totals> totals, Budget::Hold memory = {});
  ~HeldBytes();
  HeldBytes(const HeldBytes&) = delete;
  HeldBytes& operator=(const HeldBytes&) = delete;

  int64_t bytes() const { return bytes_; }

 private:
  const int64_t bytes_;
  const std::shared_ptr<Totals> totals_;
  const Budget::Hold memory_;
};

// Filled by one thread, then immutable and shared. Its bytes count as held until the last user is
// gone.
class RegisteredCrossKv {
 public:
  RegisteredCrossKv(CrossKvOrigin origin, std::shared_ptr<HeldBytes::Totals> totals,
                    Budget::Hold&& memory = {});

  const CrossKvOrigin& origin() const { return origin_; }
  // [T, H Dk] and [T, H Dv], of the kept rows.
  MatrixView<float> keys() { return ViewOf(keys_.data(), key_width_); }
  MatrixView<float> values() { return ViewOf(values_.data(), value_width_); }
  MatrixView<const float> keys() const { return ViewOf(keys_.data(), key_width_); }
  MatrixView<const float> values() const { return ViewOf(values_.data(), value_width_); }

  // Bytes of keys, values and origin.
  static int64_t PredictBytes(const CrossKvOrigin& origin);
  int64_t bytes() const { return held_.bytes(); }

 private:
  template <typename T>
  MatrixView<T> ViewOf(T* data, int64_t width) const {
    return {data, origin_.layout.tokens(), width, width};
  }

  const CrossKvOrigin origin_;
  const int64_t key_width_;
  const int64_t value_width_;
  AlignedBuffer<float> keys_;
  AlignedBuffer<float> values_;
  const HeldBytes held_;
};

struct CrossKvStoreLimits {
  int64_t max_bytes = int64_t{256} << 20;
  absl::Duration max_age = absl::Minutes(10);
};

struct CrossKvStoreCounts {
  int64_t registered = 0;
  int64_t bytes = 0;      // also of those being made, and those that are gone but still in use
  int64_t sequences = 0;  // that come in chunks
  int64_t sequence_bytes = 0;
};

// Thread-safe. Invariant: the bytes held for registered keys and values and for sequences together
// never exceed the limit. Every call first evicts what has expired. Memory is given back without
// the mutex, because that runs calls which wait for it.
class CrossKvStore {
 public:
  // The name under which a client finds what it has registered, and the time until which it can.
  struct Ticket {
    std::string handle;  // 128 random bits, in hex
    int64_t bytes = 0;
    absl::Time expires;
  };

  // What is kept is held of `memory` too, if there is one. All outlive the store.
  CrossKvStore(const Clock& clock, const CrossKvStoreLimits& limits, Budget* memory = nullptr)
      : clock_(clock), limits_(limits), memory_(memory) {}

  const CrossKvStoreLimits& limits() const { return limits_; }

  // Room for keys and values, to be filled. RESOURCE_EXHAUSTED: they do not fit with what is held.
  // INVALID_ARGUMENT: they could never.
  absl::StatusOr<std::shared_ptr<RegisteredCrossKv>> Reserve(CrossKvOrigin origin);

  // Room for a sequence that comes in chunks. RESOURCE_EXHAUSTED as Reserve.
  absl::StatusOr<std::unique_ptr<HeldBytes>> Hold(int64_t bytes);

  // Makes filled keys and values known, for at most `age`, unless their model is retired.
  Ticket Add(std::shared_ptr<const RegisteredCrossKv> cross_kv, absl::Duration age);

  // NOT_FOUND: expired, dropped, or never there. FAILED_PRECONDITION: the model that made them is
  // retired, and they would not have expired yet.
  absl::StatusOr<std::shared_ptr<const RegisteredCrossKv>> Find(const std::string& handle);

  // Forgets it; requests that have found it go on. Its bytes; errors of Find.
  absl::StatusOr<int64_t> Drop(const std::string& handle);

  // To be called when models have been retired: forgets what they have made.
  void EvictRetired();

  CrossKvStoreCounts counts();

 private:
  struct Entry {
    std::shared_ptr<const RegisteredCrossKv> cross_kv;
    absl::Time expires;
  };

  // The error of a handle that is not among the entries.
  absl::Status Missing(const std::string& handle) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Remembers that what the handle meant was of a model that is retired.
  void Retire(const std::string& handle, const Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EvictExpired();
  // Puts room for `bytes` more, for `what`, into `room`.
  absl::Status TakeRoom(const char* what, int64_t bytes, Budget::Hold& room)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  const CrossKvStoreLimits limits_;
  Budget* const memory_;
  const std::shared_ptr<HeldBytes::Totals> registered_ = std::make_shared<HeldBytes::Totals>();
  const std::shared_ptr<HeldBytes::Totals> sequences_ = std::make_shared<HeldBytes::Totals>();
  absl::Mutex mutex_;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  // Names of the retired models that have made what these handles meant. A bounded number, since
  // nobody is charged for them: those beyond it are NOT_FOUND.
  std::map<std::string, std::string> retired_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<absl::Time, std::string>> expiries_ ABSL_GUARDED_BY(mutex_);  // of both
};

}  // namespace attendant::server
