// ServiceParts, the objects that a service works with, without the service.
#pragma once

#include <cstdint>
#include <utility>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/execution/prepare_model.h"
#include "server/execution/prepare_request.h"
#include "tests/server/support/test_server.h"

namespace attendant::server {

// Advances by `step` each time it is asked. Not thread-safe.
class SteppingClock final : public Clock {
 public:
  explicit SteppingClock(absl::Duration step) : step_(step) {}
  absl::Time Now() const override { return absl::UnixEpoch() + asked_++ * step_; }
  void AwaitUntil(absl::CondVar&, absl::Mutex&, absl::Time) override {}
  int64_t asked() const { return asked_; }

 private:
  const absl::Duration step_;
  mutable int64_t asked_ = 0;
};

// Owns the objects that a ServiceContext points to.
struct ServiceParts {
  explicit ServiceParts(absl::Duration step) : clock(step) {}

  // Returns a context with TestModels() and small limits, which must not outlive these parts.
  ServiceContext Context(ThreadPlan plan) {
    const ServiceLimits limits = TestServerOptions::SmallLimits();
    models.Replace(PrepareModels(TestModels(), limits.max_request_tokens, plan, clock));
    return {models, admission, queue, metrics, cross_kv, clock, workers, limits, std::move(plan)};
  }

  SteppingClock clock;
  ModelTable models;
  ServerMetrics metrics{"test", "isa", "onednn"};
  Admission admission{{}};
  BatchQueue queue{clock, {}, {}};
  CrossKvStore cross_kv{clock, int64_t{1} << 20, absl::Minutes(10)};
  WorkerThreads workers{1};
};

// Prepares a message at once, on this thread. That of a TokenizeRequest is no request: INTERNAL.
inline absl::StatusOr<PreparedCompute> PrepareNow(absl::StatusOr<Preparation> preparation) {
  if (!preparation.ok()) return preparation.status();
  absl::StatusOr<Prepared> prepared = preparation->prepare("");
  if (!prepared.ok()) return prepared.status();
  if (auto* request = std::get_if<PreparedCompute>(&*prepared)) return std::move(*request);
  return absl::InternalError("an answer");
}

}  // namespace attendant::server
