// Gauges of the work in progress and of the memory that requests use. They are read now, for one
// scrape: numbers of requests, streams, tokens and results, times in seconds and memory in bytes.
#pragma once

#include "server/admission/admission.h"
#include "server/batching/batch_queue.h"
#include "server/cross_kv/cross_kv_store.h"
#include "server/metrics/cache_counts.h"
#include "server/metrics/gauges.h"

namespace attendant::server {

// Adds the requests in progress, the open streams, and the requests, tokens and predicted seconds
// in the queue.
void AddLoad(const Admission& admission, const BatchQueue& queue, Gauges& gauges);

// Adds the bytes held by requests and responses, their limit, and the numbers and bytes of
// registered memories and of sequences in chunks.
void AddMemory(const Admission& admission, CrossKvStore& cross_kv, Gauges& gauges);

// Adds the number and bytes of cached results, and the totals of hits and misses since the start.
void AddCache(const CacheCounts& cache, Gauges& gauges);

}  // namespace attendant::server
