// Memory for the state of a sequence that arrives in chunks.
#pragma once

#include <cstdint>

#include "engine/model/model_description.h"
#include "engine/model/model_facts.h"

namespace attendant::server {

// Upper bound of the bookkeeping for anything kept between requests, so that an empty memory or a
// narrow sequence state is not free.
inline constexpr int64_t kBookkeepingBytes = 512;

// Returns the bytes of a sequence's state over `layers` layers, whatever its length: the current
// state, and space for the next one.
inline int64_t SequenceStateBytes(const ModelDescription& model, int64_t layers) {
  return kBookkeepingBytes +
         2 * layers * LayerStateSize(model.layer) * static_cast<int64_t>(sizeof(float));
}

}  // namespace attendant::server
