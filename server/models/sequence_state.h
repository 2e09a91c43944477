// The bytes that the server keeps of a sequence that comes in chunks.
#pragma once

#include <cstdint>

#include "engine/model/model_description.h"

namespace attendant::server {

// Upper bound of the bookkeeping for anything that is kept between requests, so that registering no
// rows and sequences of narrow models are not free.
inline constexpr int64_t kBookkeepingBytes = 512;

// Bytes of a sequence that goes through `layers` layers of the model, however long it is: what the
// chunks so far have left behind, and room for what the next one leaves.
int64_t SequenceStateBytes(const ModelDescription& model, int64_t layers);

}  // namespace attendant::server
