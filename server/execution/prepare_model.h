// The last step before serving a loaded model: creating and timing its runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/layers/encoder.h"
#include "engine/layers/state/row_plan.h"
#include "server/base/clock.h"
#include "server/host/thread_plan.h"
#include "server/models/served_model.h"

namespace attendant::server {

// Returns a description for the log.
std::string Describe(const RowPlan& plan);

// Returns the model with a run for each instance of the plan, for batches of at most `max_tokens`,
// its row plan and its cost rates. These are taken from `base`, a prepared model, unless it is
// null; otherwise they are measured by `clock`, for about half a second, and logged. Thread-safe:
// with NUMA nodes in the plan, threads bound to them do the work.
std::shared_ptr<const ServedModel> PrepareModel(const ServedModel& loaded, const ServedModel* base,
                                                int64_t max_tokens, const ThreadPlan& plan,
                                                const Clock& clock);

// Prepares models, some of which may be bases of others.
ServedModels PrepareModels(const ServedModels& loaded, int64_t max_tokens, const ThreadPlan& plan,
                           const Clock& clock);

// Sets the rates of the model's cost model unless they are known. An overlay takes those of `base`,
// which is null otherwise. Other models are measured on `run`, for at most about a third of a
// second, overwriting its input; its row plan must be set. Models whose layers cannot attend to
// their own rows are not timed.
void TimeCosts(const ServedModel& model, const ServedModel* base, EncoderRun& run,
               const Clock& clock);

}  // namespace attendant::server
