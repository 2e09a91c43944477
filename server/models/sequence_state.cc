#include "server/models/sequence_state.h"

#include "engine/model/model_facts.h"

namespace attendant::server {

int64_t SequenceStateBytes(const ModelDescription& model, int64_t layers) {
  return kBookkeepingBytes +
         2 * layers * LayerStateSize(model.layer) * static_cast<int64_t>(sizeof(float));
}

}  // namespace attendant::server
