// Gauges of the work in progress and of the memory that requests use.
#pragma once

#include "server/admission/admission.h"
#include "server/batching/batch_queue.h"
#include "server/cross_kv/cross_kv_store.h"
#include "server/metrics/cache_counts.h"
#include "server/metrics/gauges.h"

namespace attendant::server {

void AddLoad(const Admission& admission, const BatchQueue& queue, Gauges& gauges);
void AddMemory(const Admission& admission, CrossKvStore& cross_kv, Gauges& gauges);
void AddCache(const CacheCounts& cache, Gauges& gauges);

}  // namespace attendant::server
