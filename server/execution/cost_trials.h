// Times a few runs of a model's layers at load, for its cost model.
#pragma once

#include "engine/layers/encoder.h"
#include "server/base/clock.h"
#include "server/models/served_model.h"

namespace attendant::server {

// Sets the rates of the model's cost model unless they are known. An overlay takes those of `base`,
// which is null otherwise. Other models are measured on `run`, for at most about a third of a
// second, overwriting its input; its row plan must be set. Models whose layers cannot attend to
// their own rows are not timed.
void TimeCosts(const ServedModel& model, const ServedModel* base, EncoderRun& run,
               const Clock& clock);

}  // namespace attendant::server
