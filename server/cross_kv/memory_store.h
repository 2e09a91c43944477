// What is kept for requests to come: memories that clients have registered, keys and values of a
// layer; and room for what the chunks of sequences leave behind.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/matrix_view.h"
#include "server/batching/clock.h"
#include "server/models/served_model.h"
#include "server/tensors/token_layout.h"

namespace attendant::server {

// What a memory is of.
struct MemoryOrigin {
  std::shared_ptr<const ServedModel> model;
  int64_t layer = 0;
  TokenLayout layout;  // of its rows
};

// Filled by one thread, then immutable and shared. Its bytes count as held until the last user is
// gone.
class RegisteredMemory {
 public:
  RegisteredMemory(MemoryOrigin origin, std::shared_ptr<std::atomic<int64_t>> held_bytes);
  ~RegisteredMemory();
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;

  const MemoryOrigin& origin() const { return origin_; }
  // [T, H Dk] and [T, H Dv], of the kept rows.
  MatrixView<float> keys() { return ViewOf(keys_.data(), key_width_); }
  MatrixView<float> values() { return ViewOf(values_.data(), value_width_); }
  MatrixView<const float> keys() const { return ViewOf(keys_.data(), key_width_); }
  MatrixView<const float> values() const { return ViewOf(values_.data(), value_width_); }

  // Of keys, values and what says where they belong.
  static int64_t PredictBytes(const MemoryOrigin& origin);
  int64_t bytes() const { return bytes_; }

 private:
  template <typename T>
  MatrixView<T> ViewOf(T* data, int64_t width) const {
    return {data, origin_.layout.tokens(), width, width};
  }

  const MemoryOrigin origin_;
  const int64_t bytes_;
  const int64_t key_width_;
  const int64_t value_width_;
  AlignedBuffer<float> keys_;
  AlignedBuffer<float> values_;
  const std::shared_ptr<std::atomic<int64_t>> held_bytes_;
};

// Bytes that count as held, for a sequence that comes in chunks, while it lives.
class HeldBytes {
 public:
  struct Totals {
    std::atomic<int64_t> bytes = 0;
    std::atomic<int64_t> sequences = 0;
  };

  HeldBytes(int64_t bytes, std::shared_ptr<Totals> totals);
  ~HeldBytes();
  HeldBytes(const HeldBytes&) = delete;
  HeldBytes& operator=(const HeldBytes&) = delete;

 private:
  const int64_t bytes_;
  const std::shared_ptr<Totals> totals_;
};

struct MemoryStoreLimits {
  int64_t max_bytes = int64_t{256} << 20;
  absl::Duration max_age = absl::Minutes(10);
};

struct MemoryStoreCounts {
  int64_t memories = 0;
  int64_t bytes = 0;      // also of those being made, and those that are gone but still in use
  int64_t sequences = 0;  // that come in chunks
  int64_t sequence_bytes = 0;
};

// Thread-safe. Invariant: the bytes held, of memories and of sequences together, never pass the
// limit. Every call first evicts what has expired.
class MemoryStore {
 public:
  // How a client names a memory, and until when.
  struct Ticket {
    std::string handle;  // 128 random bits, in hex
    int64_t bytes = 0;
    absl::Time expires;
  };

  // `clock` outlives the store.
  MemoryStore(const Clock& clock, const MemoryStoreLimits& limits)
      : clock_(clock), limits_(limits) {}

  const MemoryStoreLimits& limits() const { return limits_; }

  // Room for a memory, to be filled. RESOURCE_EXHAUSTED: it does not fit beside what is held.
  absl::StatusOr<std::shared_ptr<RegisteredMemory>> Reserve(MemoryOrigin origin);

  // Room for a sequence that comes in chunks. RESOURCE_EXHAUSTED as Reserve.
  absl::StatusOr<std::unique_ptr<HeldBytes>> Hold(int64_t bytes);

  // Makes a filled memory known, for at most `age`.
  Ticket Add(std::shared_ptr<const RegisteredMemory> memory, absl::Duration age);

  // NOT_FOUND: expired, dropped, or never there.
  absl::StatusOr<std::shared_ptr<const RegisteredMemory>> Find(const std::string& handle);

  // Forgets it; requests that have found it go on. Its bytes; NOT_FOUND as Find.
  absl::StatusOr<int64_t> Drop(const std::string& handle);

  MemoryStoreCounts counts();

 private:
  struct Entry {
    std::shared_ptr<const RegisteredMemory> memory;
    absl::Time expires;
  };

  void EvictExpired() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // RESOURCE_EXHAUSTED if `what`, of so many bytes, does not fit.
  absl::Status CheckRoom(const char* what, int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  const MemoryStoreLimits limits_;
  const std::shared_ptr<std::atomic<int64_t>> held_bytes_ =
      std::make_shared<std::atomic<int64_t>>(0);
  const std::shared_ptr<HeldBytes::Totals> sequences_ = std::make_shared<HeldBytes::Totals>();
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<absl::Time, std::string>> expiries_ ABSL_GUARDED_BY(mutex_);  // of all entries
};

}  // namespace attendant::server
