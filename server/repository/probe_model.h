// ProbeModel: checks that a model computes the same bits however it is asked.
#pragma once

#include "absl/status/status.h"
#include "server/models/served_model.h"

namespace attendant::server {

// Computes each layer on a fixed sequence: alone, again, between other sequences, and on one thread
// instead of all. INTERNAL names the layer and the way that has given other bits. Models whose
// layers cannot attend to their own rows are not probed. The model is prepared, and nobody uses its
// runs yet. Any thread.
absl::Status ProbeModel(const ServedModel& model);

}  // namespace attendant::server
