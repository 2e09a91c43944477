// CrossKvStore, the store for data kept between requests: projected keys and values that clients
// register for cross-attention, and memory for the states of sequences that arrive in chunks.
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

// The rows from which keys and values were projected, and the layer that projected them.
struct CrossKvOrigin {
  std::shared_ptr<const ServedModel> model;
  int64_t layer = 0;
  TokenLayout layout;
};

// Counts bytes as held, here and in the server's memory budget, during its lifetime. Thread-safe.
class HeldBytes {
 public:
  struct Totals {
    std::atomic<int64_t> bytes = 0;
    std::atomic<int64_t> holders = 0;
  };

  HeldBytes(int64_t bytes, std::shared_ptr<Totals> totals, Budget::Reservation memory = {});
  ~HeldBytes();
  HeldBytes(const HeldBytes&) = delete;
  HeldBytes& operator=(const HeldBytes&) = delete;

  int64_t bytes() const { return bytes_; }

 private:
  const int64_t bytes_;
  const std::shared_ptr<Totals> totals_;
  const Budget::Reservation memory_;
};

// Filled by one thread, then immutable and shared. Its bytes count as held until the last user
// releases it.
class RegisteredCrossKv {
 public:
  RegisteredCrossKv(CrossKvOrigin origin, std::shared_ptr<HeldBytes::Totals> totals,
                    Budget::Reservation&& memory = {});

  const CrossKvOrigin& origin() const { return origin_; }
  // [T, H Dk] and [T, H Dv], for the kept rows.
  MatrixView<float> keys() { return ViewOf(keys_.data(), key_width_); }
  MatrixView<float> values() { return ViewOf(values_.data(), value_width_); }
  MatrixView<const float> keys() const { return ViewOf(keys_.data(), key_width_); }
  MatrixView<const float> values() const { return ViewOf(values_.data(), value_width_); }

  // Bytes of the keys, values and origin.
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

struct CrossKvStoreCounts {
  int64_t registered = 0;
  int64_t bytes = 0;      // including those being filled, and dropped ones still in use
  int64_t sequences = 0;  // that arrive in chunks
  int64_t sequence_bytes = 0;
};

// Thread-safe. Invariant: the bytes held for registered keys and values and for sequences together
// never exceed the limit. Every call first evicts expired entries. Memory is released without the
// mutex, because that runs calls that are waiting for it.
class CrossKvStore {
 public:
  // The handle by which a client refers to registered keys and values, and their expiry time.
  struct Registration {
    std::string handle;  // 128 random bits, in hex
    int64_t bytes = 0;
    absl::Time expires;
  };

  // Held bytes also count in `memory`, unless null. `clock` and `memory` must outlive the store.
  CrossKvStore(const Clock& clock, int64_t max_bytes, absl::Duration max_age,
               Budget* memory = nullptr)
      : clock_(clock), max_bytes_(max_bytes), max_age_(max_age), memory_(memory) {}

  // Returns the longest time that entries may be asked to stay.
  absl::Duration max_age() const { return max_age_; }

  // Reserves memory for keys and values, which the caller fills. Returns RESOURCE_EXHAUSTED if they
  // do not fit now, and INVALID_ARGUMENT if they never will.
  absl::StatusOr<std::shared_ptr<RegisteredCrossKv>> Reserve(CrossKvOrigin origin);

  // Reserves memory for the state of a sequence. Returns the errors of Reserve.
  absl::StatusOr<std::unique_ptr<HeldBytes>> Hold(int64_t bytes);

  // Registers filled keys and values for at most `age`, unless their model is retired.
  Registration Add(std::shared_ptr<const RegisteredCrossKv> cross_kv, absl::Duration age);

  // Returns NOT_FOUND if the handle expired, was dropped or never existed, and FAILED_PRECONDITION
  // if it has not expired but its model has been retired.
  absl::StatusOr<std::shared_ptr<const RegisteredCrossKv>> Find(const std::string& handle);

  // Drops the entry and returns its bytes; requests that have found it continue. Returns the errors
  // of Find.
  absl::StatusOr<int64_t> Drop(const std::string& handle);

  // Call after models have been retired: drops their entries.
  void EvictRetired();

  CrossKvStoreCounts counts();

 private:
  struct Entry {
    std::shared_ptr<const RegisteredCrossKv> cross_kv;
    absl::Time expires;
  };

  // Returns the error of a handle without an entry.
  absl::Status Missing(const std::string& handle) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Remembers that the handle's model has been retired.
  void Retire(const std::string& handle, const Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EvictExpired();
  // Takes memory for `bytes` of `what` into `room`.
  absl::Status TakeRoom(const char* what, int64_t bytes, Budget::Reservation& room)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  const int64_t max_bytes_;
  const absl::Duration max_age_;
  Budget* const memory_;
  const std::shared_ptr<HeldBytes::Totals> registered_ = std::make_shared<HeldBytes::Totals>();
  const std::shared_ptr<HeldBytes::Totals> sequences_ = std::make_shared<HeldBytes::Totals>();
  absl::Mutex mutex_;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  // Names of the retired models behind handles. Bounded, because no client is charged for them:
  // further handles are NOT_FOUND.
  std::map<std::string, std::string> retired_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<absl::Time, std::string>> expiries_ ABSL_GUARDED_BY(mutex_);  // of both maps
};

}  // namespace attendant::server
