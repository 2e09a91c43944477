// ProbeModel, a self-test that checks that a model computes the same bits in different batches.
#pragma once

#include "absl/status/status.h"
#include "server/models/served_model.h"

namespace attendant::server {

// Computes each layer on a fixed sequence: by itself, again, between other sequences, and on one
// thread instead of all. Returns INTERNAL with the layer and the variant that differs. Skips models
// whose layers cannot attend to their own rows. The model must be prepared and its runs unused.
// Thread-safe.
absl::Status ProbeModel(const ServedModel& model);

}  // namespace attendant::server
