// The models, limits and kept keys that a request is checked against.
#pragma once

#include "server/cross_kv/cross_kv_store.h"
#include "server/cross_kv/stream_sequence.h"
#include "server/models/model_table.h"
#include "server/request/service_context.h"

namespace attendant::server {

struct ValidationContext {
  const ModelTable& models;
  const ServiceLimits& limits;
  CrossKvStore& cross_kv;
  const StreamSequence* sequence = nullptr;  // that the request is a chunk of; or none
};

}  // namespace attendant::server
