// The bytes that the server keeps of a sequence that comes in parts.
#pragma once

#include <cstdint>

#include "engine/model/model_description.h"

namespace attendant::server {

// Bytes of a sequence that goes through `layers` layers of the model, however long it is: what the
// parts so far have left behind, and room for what the next one leaves.
int64_t SequenceStateBytes(const ModelDescription& model, int64_t layers);

}  // namespace attendant::server
