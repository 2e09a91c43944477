// One admitted request on its way through the batch queue.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace attendant::server {

enum class JobKind : int8_t { kCompute, kRegistration };

// Only jobs with equal keys may be computed in the same batch.
struct BatchKey {
  const void* model = nullptr;  // identity of the served model; never dereferenced
  JobKind kind = JobKind::kCompute;
  int32_t operation = 0;  // the computation, numbered by the code that makes jobs of this kind
  int64_t first_layer = 0;
  int64_t layers = 0;

  bool operator==(const BatchKey&) const = default;
};

// A job is owned by the queue from a successful Submit until Take hands it to an instance. It is
// answered exactly once: by one call of Fail, or by the BatchRunner that computes it.
class Job {
 public:
  virtual ~Job() = default;

  // Set before Submit and constant from then on.
  BatchKey key;
  int64_t tokens = 0;  // kept tokens; 0 is valid (everything is masked)
  absl::Time deadline = absl::InfiniteFuture();

  // Set by the queue.
  absl::Time enqueued;

  // Returns true once the caller is gone. May be called on any thread, and is called with the lock
  // of the queue held, so it must be quick and must not take a lock.
  virtual bool cancelled() const = 0;

  // Answers the request with an error. May be called on any thread; no lock of the queue is held.
  virtual void Fail(const absl::Status& status) = 0;
};

}  // namespace attendant::server
