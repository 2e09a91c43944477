// Choice, for each model, of how the threads divide its work.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "engine/layers/encoder.h"
#include "engine/layers/state/row_plan.h"
#include "server/request/service_context.h"

namespace attendant::server {

// For the log.
std::string Describe(const RowPlan& plan);

// The plan of each model, chosen once by the first instance that has a run for it; models that
// share weights share the plan. Thread-safe.
class RowPlans {
 public:
  // `context` outlives this; its thread plan has the policy, its clock is what plans are timed by.
  explicit RowPlans(const ServiceContext& context) : context_(context) {}

  // Gives the run the plan of its model. If it has none yet, it is chosen on this run, and logged
  // if the choice was free; other callers wait meanwhile, so this is for the time before readiness.
  void Apply(const ServedModel& model, EncoderRun& run);

  // RowPlan::rows_from of the model; 0 before the first Apply.
  int64_t RowsFrom(const ServedModel& model) const;

 private:
  const ServiceContext& context_;
  mutable absl::Mutex mutex_;
  std::map<std::string, RowPlan> plans_ ABSL_GUARDED_BY(mutex_);  // by the name of the weights
};

}  // namespace attendant::server
