// Times a few runs of a model's layers when it is loaded, for its cost model.
#pragma once

#include "engine/layers/encoder.h"
#include "server/base/clock.h"
#include "server/models/served_model.h"

namespace attendant::server {

// Sets the rates of the model's cost model, unless they are known: an overlay takes those of
// `base`, which is null for any other model. Otherwise they are measured on `run`, which overwrites
// its input and takes about a third of a second at most. The row plan of the run must have been
// set. Runs of models whose layers cannot attend to their own rows are not timed.
void TimeCosts(const ServedModel& model, const ServedModel* base, EncoderRun& run,
               const Clock& clock);

}  // namespace attendant::server
