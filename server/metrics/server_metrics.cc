#include "server/metrics/server_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <tuple>

#include "absl/synchronization/mutex.h"
#include "server/metrics/process_figures.h"
#include "server/metrics/series_cache.h"

namespace attendant::server {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using Boundaries = Histogram::BucketBoundaries;

// Bucket boundaries from 100 us to 60 s, about three per decade.
const Boundaries& SecondsBuckets() {
  static const auto& buckets =
      *new Boundaries{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                      0.1,    0.25,    0.5,    1,     2.5,    5,     10,   25,    60};
  return buckets;
}

Boundaries PowersOfTwo(int largest_exponent) {
  Boundaries buckets;
  for (int exponent = 0; exponent <= largest_exponent; ++exponent)
    buckets.push_back(int64_t{1} << exponent);
  return buckets;
}

// The gauges that show a number as it is.
struct PlainGauge {
  const char* name;
  const char* help;
  int64_t ServerGauges::*value;
};

constexpr PlainGauge kPlainGauges[] = {
    {"attendant_inflight_requests",
     "Requests in progress, from their headers until their response is sent.",
     &ServerGauges::inflight},
    {"attendant_queue_requests", "Requests waiting in the queue.", &ServerGauges::queue_requests},
    {"attendant_queue_tokens", "Kept tokens waiting in the queue.", &ServerGauges::queue_tokens},
    {"attendant_receiving_bytes", "Memory granted to requests being received.",
     &ServerGauges::receiving_bytes},
    {"attendant_request_bytes",
     "Memory of waiting and running requests, including their responses.",
     &ServerGauges::request_bytes},
    {"attendant_answer_bytes", "Bytes held by unsent responses.", &ServerGauges::answer_bytes},
    {"attendant_budget_bytes",
     "Memory limit for requests, responses and registered memories together.",
     &ServerGauges::budget_bytes},
    {"attendant_open_streams", "Open EncodeStream and reflection streams.",
     &ServerGauges::open_streams},
    {"attendant_registered_memories", "Memories registered by PutMemory.",
     &ServerGauges::registered_memories},
    {"attendant_registered_memory_bytes",
     "Bytes of registered memories, including dropped ones in use by requests.",
     &ServerGauges::registered_memory_bytes},
    {"attendant_stream_sequences", "Sequences that arrive in chunks over open EncodeStreams.",
     &ServerGauges::stream_sequences},
    {"attendant_stream_sequence_bytes", "Bytes of sequence states kept between chunks.",
     &ServerGauges::stream_sequence_bytes},
    {"attendant_connections", "Open gRPC connections.", &ServerGauges::connections},
};

}  // namespace

struct ServerMetrics::Series {
  // The series of one model, created when the model is first recorded. Their number is bounded,
  // because only the names of served models are recorded.
  struct ModelSeries {
    Counter& tokens;
    Counter& padding_avoided;
    Counter& fully_masked_rows;
    Counter& dead_rows;
    Counter& nonfinite_requests;
    Histogram& queue_seconds;
    Histogram& copy_seconds;
    Histogram& compute_seconds;
    Histogram& batch_tokens;
    Histogram& batch_requests;
    Histogram& cost_ratio;
    Histogram& slack_seconds;
  };

  struct EndSeries {
    Counter& requests;
    Histogram& seconds;
  };

  const ModelSeries& ForModel(const std::string& model) {
    return by_model.Get(model, [&] { return MakeModelSeries({{"model", model}}); });
  }

  const EndSeries& ForEnd(const RequestRecord& record) {
    return by_end.Get(std::tie(record.method, record.model, record.code), [&] {
      const prometheus::Labels labels = {{"method", record.method},
                                         {"model", record.model},
                                         {"code", absl::StatusCodeToString(record.code)}};
      return EndSeries{requests.Add(labels), request_seconds.Add(labels, SecondsBuckets())};
    });
  }

  ModelSeries MakeModelSeries(const prometheus::Labels& labels) {
    return {tokens.Add(labels),
            padding_avoided.Add(labels),
            fully_masked_rows.Add(labels),
            dead_rows.Add(labels),
            nonfinite_requests.Add(labels),
            queue_seconds.Add(labels, SecondsBuckets()),
            copy_seconds.Add(labels, SecondsBuckets()),
            compute_seconds.Add(labels, SecondsBuckets()),
            batch_tokens.Add(labels, token_buckets),
            batch_requests.Add(labels, request_buckets),
            cost_ratio.Add(labels, ratio_buckets),
            slack_seconds.Add(labels, SecondsBuckets())};
  }

  // Sets a counter, of a total that is kept elsewhere. It never goes down, also if another scrape
  // has read a later total in the meantime.
  void RaiseTo(double total, Counter& counter) {
    absl::MutexLock lock(&raise_mutex);
    counter.Increment(std::max(0.0, total - counter.Value()));
  }

  Family<Counter>& MakeCounters(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }
  Family<Histogram>& MakeHistograms(const char* name, const char* help) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
  }
  Family<Gauge>& MakeGauges(const char* name, const char* help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
  }
  Gauge& MakeGauge(const char* name, const char* help, const prometheus::Labels& labels = {}) {
    return MakeGauges(name, help).Add(labels);
  }

  std::atomic<int64_t> answered = 0;
  FiguresByModel figures;
  prometheus::Registry registry;
  const Boundaries token_buckets = PowersOfTwo(16);
  const Boundaries request_buckets = PowersOfTwo(8);
  const Boundaries ratio_buckets = {0.25, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 4};
  Family<Counter>& requests =
      MakeCounters("attendant_requests_total", "Requests that have ended, by status code.");
  Family<Histogram>& request_seconds = MakeHistograms(
      "attendant_request_seconds",
      "Time from the headers of a request, or the arrival of a stream's item, to its end.");
  Family<Counter>& refusals =
      MakeCounters("attendant_refusals_total",
                   "Refused requests that might succeed at another time, by reason.");
  Counter& unsent_answers = MakeCounters("attendant_unsent_answers_total",
                                         "Calls ended because their response was not sent in time.")
                                .Add({});
  Family<Counter>& tokens =
      MakeCounters("attendant_tokens_total", "Kept tokens of successful requests.");
  Family<Counter>& padding_avoided =
      MakeCounters("attendant_padding_tokens_avoided_total",
                   "Padded tokens of successful requests, never computed.");
  Family<Counter>& fully_masked_rows =
      MakeCounters("attendant_keyless_rows_total",
                   "Query rows, times heads, with all keys masked: their context is zero.");
  Family<Counter>& dead_rows = MakeCounters(
      "attendant_dead_rows_total",
      "Tokens computed for requests whose deadline had passed before their batch began.");
  Family<Counter>& nonfinite_requests = MakeCounters(
      "attendant_nonfinite_requests_total", "Requests with NaN or infinity in their input.");
  Family<Histogram>& queue_seconds = MakeHistograms(
      "attendant_queue_seconds", "Time that a successful request waited in the queue.");
  Family<Histogram>& copy_seconds = MakeHistograms(
      "attendant_batch_copy_seconds", "Time to copy a batch's rows in and its results out.");
  Family<Histogram>& compute_seconds =
      MakeHistograms("attendant_batch_compute_seconds", "Time to compute a batch.");
  Family<Histogram>& batch_tokens =
      MakeHistograms("attendant_batch_tokens", "Kept tokens in a batch.");
  Family<Histogram>& batch_requests =
      MakeHistograms("attendant_batch_requests", "Requests in a batch.");
  Family<Histogram>& cost_ratio =
      MakeHistograms("attendant_batch_cost_ratio",
                     "Measured time of a batch on its instance, over the predicted time.");
  Family<Histogram>& slack_seconds =
      MakeHistograms("attendant_deadline_slack_seconds",
                     "Time left to the deadline when a request, or a slice of it, was computed.");
  Family<Counter>& batches =
      MakeCounters("attendant_batches_total", "Computed batches, by the reason for closing them.");
  Gauge& queue_seconds_waiting = MakeGauge("attendant_queue_predicted_seconds",
                                           "Predicted time of the queue on one instance.");
  Gauge& ready = MakeGauge("attendant_ready", "1 if the server accepts requests.");
  Family<Counter>& cache_hits =
      MakeCounters("attendant_cache_hits_total", "Cache hits, for results of sequences or texts.");
  Family<Counter>& cache_misses = MakeCounters("attendant_cache_misses_total",
                                               "Cache misses, for results of sequences or texts.");
  Gauge& cache_entries = MakeGauge("attendant_cache_entries", "Results in the cache.");
  Gauge& cache_bytes =
      MakeGauge("attendant_cache_bytes", "Memory of cached results, at most --cache-bytes.");
  Family<Counter>& refused_connections =
      MakeCounters("attendant_refused_connections_total",
                   "gRPC connections closed at once, or cut later for a flood of frames.");
  Family<Counter>& model_loads =
      MakeCounters("attendant_model_loads_total", "Loads of model repository versions, by result.");
  Family<Counter>& reloads =
      MakeCounters("attendant_reloads_total",
                   "Reloads of changed files; after a failure the last good ones stay in use.");
  Family<Counter>& token_refusals =
      MakeCounters("attendant_token_refusals_total",
                   "Calls with a bearer token that was missing, unknown or of another scope.");
  Family<Gauge>& certificate_expiry = MakeGauges(
      "attendant_certificate_expiry_timestamp_seconds",
      "Earliest expiry in the certificate chain in use, in seconds since the unix epoch.");
  std::vector<Gauge*> plain_gauges;  // of kPlainGauges
  ModelGaugeFamilies models{registry};
  Gauge& descriptors = MakeGauge("process_open_fds", "Number of open file descriptors.");
  absl::Mutex raise_mutex;
  Counter& processor_seconds =
      MakeCounters("process_cpu_seconds_total", "Total user and system CPU time in seconds.")
          .Add({});
  Gauge& resident = MakeGauge("process_resident_memory_bytes", "Resident memory size in bytes.");
  Gauge& start_time = MakeGauge("process_start_time_seconds",
                                "Start time of the process since unix epoch in seconds.");

  SeriesCache<std::string, ModelSeries> by_model;
  SeriesCache<std::tuple<std::string, std::string, absl::StatusCode>, EndSeries> by_end;
};

ServerMetrics::ServerMetrics(const std::string& version, const std::string& isa,
                             const std::string& onednn)
    : series_(std::make_unique<Series>()) {
  for (const PlainGauge& gauge : kPlainGauges) {
    series_->plain_gauges.push_back(&series_->MakeGauge(gauge.name, gauge.help));
  }
  series_
      ->MakeGauge("attendant_build_info", "1, with the versions as labels.",
                  {{"version", version}, {"isa", isa}, {"onednn", onednn}})
      .Set(1);
  series_->start_time.Set(static_cast<double>(std::time(nullptr)));
}

ServerMetrics::~ServerMetrics() = default;

void ServerMetrics::RecordRequest(const RequestRecord& record) {
  const Series::EndSeries& ends = series_->ForEnd(record);
  ends.requests.Increment();
  if (record.code == absl::StatusCode::kOk) ++series_->answered;
  ends.seconds.Observe(absl::ToDoubleSeconds(record.elapsed));
  series_->figures.Add(record);
  if (!record.reason.empty()) {
    series_->refusals.Add({{"method", record.method}, {"reason", record.reason}}).Increment();
  }
  if (record.code != absl::StatusCode::kOk || record.model.empty()) return;
  const Series::ModelSeries& series = series_->ForModel(record.model);
  series.tokens.Increment(static_cast<double>(record.tokens));
  series.padding_avoided.Increment(static_cast<double>(record.padded_tokens - record.tokens));
  if (record.queued) series.queue_seconds.Observe(absl::ToDoubleSeconds(*record.queued));
}

int64_t ServerMetrics::answered() const { return series_->answered; }

void ServerMetrics::RecordBatch(const BatchRecord& record) {
  const Series::ModelSeries& series = series_->ForModel(record.model);
  series.copy_seconds.Observe(absl::ToDoubleSeconds(record.copy_in + record.copy_out));
  series.compute_seconds.Observe(absl::ToDoubleSeconds(record.compute));
  series.batch_tokens.Observe(static_cast<double>(record.tokens));
  series.batch_requests.Observe(static_cast<double>(record.requests));
  for (const absl::Duration slack : record.slacks) {
    series.slack_seconds.Observe(absl::ToDoubleSeconds(slack));
  }
  series_->figures.Add(record);
  if (record.cost_ratio > 0) series.cost_ratio.Observe(record.cost_ratio);
  series.fully_masked_rows.Increment(static_cast<double>(record.fully_masked_rows));
  series.dead_rows.Increment(static_cast<double>(record.dead_rows));
  series.nonfinite_requests.Increment(static_cast<double>(record.nonfinite_requests));
  series_->batches.Add({{"model", record.model}, {"close", record.close}}).Increment();
}

ModelFigures ServerMetrics::FiguresOf(const std::string& model) const {
  return series_->figures.Find(model);
}

void ServerMetrics::RecordReload(const std::string& what, bool ok) {
  series_->reloads.Add({{"what", what}, {"result", ok ? "ok" : "failed"}}).Increment();
}

void ServerMetrics::RecordModelLoad(const std::string& model, bool ok) {
  series_->model_loads.Add({{"model", model}, {"result", ok ? "ok" : "failed"}}).Increment();
}

void ServerMetrics::RecordRefusedConnection(const std::string& reason) {
  series_->refused_connections.Add({{"reason", reason}}).Increment();
}

void ServerMetrics::RecordRefusedToken(const std::string& scope, absl::StatusCode code) {
  series_->token_refusals.Add({{"scope", scope}, {"code", absl::StatusCodeToString(code)}})
      .Increment();
}

void ServerMetrics::CountUnsentAnswer() { series_->unsent_answers.Increment(); }

std::string ServerMetrics::Scrape(const ServerGauges& gauges) const {
  for (size_t i = 0; i < std::size(kPlainGauges); ++i) {
    series_->plain_gauges[i]->Set(static_cast<double>(gauges.*kPlainGauges[i].value));
  }
  series_->queue_seconds_waiting.Set(gauges.queue_seconds);
  series_->cache_entries.Set(static_cast<double>(gauges.cache.entries));
  series_->cache_bytes.Set(static_cast<double>(gauges.cache.bytes));
  for (size_t kind = 0; kind < std::size(kCacheKinds); ++kind) {
    const CacheCounts::Lookups& lookups = gauges.cache.lookups[kind];
    series_->RaiseTo(static_cast<double>(lookups.hits),
                     series_->cache_hits.Add({{"kind", kCacheKinds[kind]}}));
    series_->RaiseTo(static_cast<double>(lookups.misses),
                     series_->cache_misses.Add({{"kind", kCacheKinds[kind]}}));
  }
  series_->ready.Set(gauges.ready ? 1 : 0);
  series_->models.Set(gauges.models);
  if (gauges.certificate_expiry) {
    series_->certificate_expiry.Add({}).Set(
        static_cast<double>(absl::ToUnixSeconds(*gauges.certificate_expiry)));
  }
  series_->resident.Set(static_cast<double>(ResidentBytes()));
  series_->descriptors.Set(static_cast<double>(OpenDescriptors()));
  series_->RaiseTo(ProcessorSeconds(), series_->processor_seconds);
  return prometheus::TextSerializer().Serialize(series_->registry.Collect());
}

}  // namespace attendant::server
