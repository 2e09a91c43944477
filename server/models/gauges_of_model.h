// Gauges of a served model.
#pragma once

#include "absl/time/time.h"
#include "server/metrics/gauges.h"
#include "server/models/served_model.h"

namespace attendant::server {

// `now` is a time of the clock by which the cost model learns.
void AddGauges(const ServedModel& model, absl::Time now, Gauges& gauges);

}  // namespace attendant::server
