// The last step before a loaded model can be served: its runs, and what is measured on them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/layers/state/row_plan.h"
#include "server/base/clock.h"
#include "server/host/thread_plan.h"
#include "server/models/served_model.h"

namespace attendant::server {

// For the log.
std::string Describe(const RowPlan& plan);

// Makes the runs of a model.
struct RunOptions {
  int64_t max_tokens = 1;  // of a batch
  const ThreadPlan& thread_plan;
  const Clock& clock;  // by which plans and costs are timed
};

// Returns the model with a run for each instance of the plan, its row plan and the rates of its
// cost model, which it takes from `base`, a prepared model, if that is not null; otherwise they are
// measured, for about half a second, and logged. Any thread: with NUMA nodes in the plan, threads
// of its own that are bound to them do the work.
std::shared_ptr<const ServedModel> PrepareModel(const ServedModel& loaded, const ServedModel* base,
                                                const RunOptions& options);

// Prepares models of which some may be the bases of others.
ServedModels PrepareModels(const ServedModels& loaded, const RunOptions& options);

}  // namespace attendant::server
