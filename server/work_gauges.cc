#include "server/work_gauges.h"

#include <cstddef>
#include <iterator>

namespace attendant::server {

void AddLoad(const Admission& admission, const BatchQueue& queue, Gauges& gauges) {
  gauges.Add("attendant_inflight_requests",
             "Requests in progress, from their headers until their response is sent.",
             admission.slots().counts().all());
  gauges.Add("attendant_open_streams", "Open EncodeStream and reflection streams.",
             admission.streams().counts().all());
  const QueueCounts waiting = queue.counts();
  gauges.Add("attendant_queue_requests", "Requests waiting in the queue.", waiting.jobs);
  gauges.Add("attendant_queue_tokens", "Kept tokens waiting in the queue.", waiting.tokens);
  gauges.Add("attendant_queue_predicted_seconds", "Predicted time of the queue on one instance.",
             waiting.seconds);
}

void AddMemory(const Admission& admission, CrossKvStore& cross_kv, Gauges& gauges) {
  const BudgetCounts memory = admission.memory().counts();
  gauges.Add("attendant_receiving_bytes", "Memory granted to requests being received.",
             memory.held_for(HeldFor::kReceiving));
  gauges.Add("attendant_request_bytes",
             "Memory of waiting and running requests, including their responses.",
             memory.held_for(HeldFor::kRequest));
  gauges.Add("attendant_answer_bytes", "Bytes held by unsent responses.",
             memory.held_for(HeldFor::kAnswer));
  gauges.Add("attendant_budget_bytes",
             "Memory limit for requests, responses and registered memories together.",
             admission.memory().total());
  const CrossKvStoreCounts kept = cross_kv.counts();
  gauges.Add("attendant_registered_memories", "Memories registered by PutMemory.", kept.registered);
  gauges.Add("attendant_registered_memory_bytes",
             "Bytes of registered memories, including dropped ones in use by requests.",
             kept.bytes);
  gauges.Add("attendant_stream_sequences",
             "Sequences that arrive in chunks over open EncodeStreams.", kept.sequences);
  gauges.Add("attendant_stream_sequence_bytes", "Bytes of sequence states kept between chunks.",
             kept.sequence_bytes);
}

void AddCache(const CacheCounts& cache, Gauges& gauges) {
  gauges.Add("attendant_cache_entries", "Results in the cache.", cache.entries);
  gauges.Add("attendant_cache_bytes", "Memory of cached results, at most --cache-bytes.",
             cache.bytes);
  for (size_t kind = 0; kind < std::size(kCacheKinds); ++kind) {
    const Gauges::Labels labels = {{"kind", kCacheKinds[kind]}};
    gauges.AddTotal("attendant_cache_hits_total", "Cache hits, for results of sequences or texts.",
                    cache.lookups[kind].hits, labels);
    gauges.AddTotal("attendant_cache_misses_total",
                    "Cache misses, for results of sequences or texts.", cache.lookups[kind].misses,
                    labels);
  }
}

}  // namespace attendant::server
