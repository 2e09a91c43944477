// The last step before serving a loaded model: creating and timing its runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/layers/state/row_plan.h"
#include "server/base/clock.h"
#include "server/host/thread_plan.h"
#include "server/models/served_model.h"

namespace attendant::server {

// Returns a description for the log.
std::string Describe(const RowPlan& plan);

// Options for creating the runs of a model.
struct RunOptions {
  int64_t max_tokens = 1;  // per batch
  const ThreadPlan& thread_plan;
  const Clock& clock;  // for timing plans and costs
};

// Returns the model with a run for each instance of the plan, its row plan and its cost rates.
// These are taken from `base`, a prepared model, unless it is null; otherwise they are measured,
// for about half a second, and logged. Thread-safe: with NUMA nodes in the plan, threads bound to
// them do the work.
std::shared_ptr<const ServedModel> PrepareModel(const ServedModel& loaded, const ServedModel* base,
                                                const RunOptions& options);

// Prepares models, some of which may be bases of others.
ServedModels PrepareModels(const ServedModels& loaded, const RunOptions& options);

}  // namespace attendant::server
