#include "server/models/sequence_state.h"

#include "engine/model/model_facts.h"

namespace attendant::server {
namespace {

// Upper bound of the bookkeeping, so that sequences of narrow models are not free.
constexpr int64_t kBytesOfEach = 512;

}  // namespace

int64_t SequenceStateBytes(const ModelDescription& model, int64_t layers) {
  return kBytesOfEach +
         2 * layers * LayerStateSize(model.layer) * static_cast<int64_t>(sizeof(float));
}

}  // namespace attendant::server
