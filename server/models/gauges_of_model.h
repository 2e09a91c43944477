// Collects the gauges of a served model.
#pragma once

#include "absl/time/time.h"
#include "server/metrics/model_gauges.h"
#include "server/models/served_model.h"

namespace attendant::server {

// `now` is a time of the clock by which the cost model learns.
ModelGauges GaugesOf(const ServedModel& model, absl::Time now);

}  // namespace attendant::server
