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

#include "absl/base/thread_annotations.h"
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

}  // namespace

class ServerMetrics::Impl {
 public:
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

  const ModelSeries& ForModel(const std::string& model) {
    return by_model_.Get(model, [&] { return MakeModelSeries({{"model", model}}); });
  }

  int64_t answered() const { return answered_; }
  FiguresByModel& figures() { return figures_; }

  void CountRequest(const RequestRecord& record) {
    const EndSeries& ends = by_end_.Get(std::tie(record.method, record.model, record.code), [&] {
      const prometheus::Labels labels = {{"method", record.method},
                                         {"model", record.model},
                                         {"code", absl::StatusCodeToString(record.code)}};
      return EndSeries{requests_.Add(labels), request_seconds_.Add(labels, SecondsBuckets())};
    });
    ends.requests.Increment();
    if (record.code == absl::StatusCode::kOk) ++answered_;
    ends.seconds.Observe(absl::ToDoubleSeconds(record.elapsed));
    if (record.reason.empty()) return;
    by_refusal_
        .Get(std::tie(record.method, record.reason),
             [&] {
               return &refusals_.Add({{"method", record.method}, {"reason", record.reason}});
             })
        ->Increment();
  }

  void CountBatch(const BatchRecord& record) {
    by_close_
        .Get(std::tie(record.model, record.close),
             [&] {
               return &batches_.Add({{"model", record.model}, {"close", record.close}});
             })
        ->Increment();
  }

  void CountRefusedToken(const std::string& scope, absl::StatusCode code) {
    token_refusals_.Add({{"scope", scope}, {"code", absl::StatusCodeToString(code)}}).Increment();
  }

  void CountRefusedConnection(const std::string& reason) {
    refused_connections_.Add({{"reason", reason}}).Increment();
  }

  void CountReload(const std::string& what, bool ok) {
    reloads_.Add({{"what", what}, {"result", ok ? "ok" : "failed"}}).Increment();
  }

  void CountModelLoad(const std::string& model, bool ok) {
    model_loads_.Add({{"model", model}, {"result", ok ? "ok" : "failed"}}).Increment();
  }

  void CountUnsentAnswer() { unsent_answers_.Increment(); }

  void SetBuildInfo(const std::string& version, const std::string& isa, const std::string& onednn) {
    MakeGauge("attendant_build_info", "1, with the versions as labels.",
              {{"version", version}, {"isa", isa}, {"onednn", onednn}})
        .Set(1);
    start_time_.Set(static_cast<double>(std::time(nullptr)));
  }

  std::string Scrape(const ServerGauges& gauges) {
    inflight_.Set(static_cast<double>(gauges.inflight));
    queue_requests_.Set(static_cast<double>(gauges.queue_requests));
    queue_tokens_.Set(static_cast<double>(gauges.queue_tokens));
    open_streams_.Set(static_cast<double>(gauges.open_streams));
    queue_seconds_waiting_.Set(gauges.queue_seconds);
    receiving_bytes_.Set(static_cast<double>(gauges.receiving_bytes));
    request_bytes_.Set(static_cast<double>(gauges.request_bytes));
    answer_bytes_.Set(static_cast<double>(gauges.answer_bytes));
    budget_bytes_.Set(static_cast<double>(gauges.budget_bytes));
    ready_.Set(gauges.ready ? 1 : 0);
    registered_memories_.Set(static_cast<double>(gauges.registered_memories));
    registered_memory_bytes_.Set(static_cast<double>(gauges.registered_memory_bytes));
    stream_sequences_.Set(static_cast<double>(gauges.stream_sequences));
    stream_sequence_bytes_.Set(static_cast<double>(gauges.stream_sequence_bytes));
    connections_.Set(static_cast<double>(gauges.connections));
    cache_entries_.Set(static_cast<double>(gauges.cache.entries));
    cache_bytes_.Set(static_cast<double>(gauges.cache.bytes));
    for (size_t kind = 0; kind < std::size(kCacheKinds); ++kind) {
      const CacheCounts::Lookups& lookups = gauges.cache.lookups[kind];
      RaiseTo(static_cast<double>(lookups.hits), cache_hits_.Add({{"kind", kCacheKinds[kind]}}));
      RaiseTo(static_cast<double>(lookups.misses),
              cache_misses_.Add({{"kind", kCacheKinds[kind]}}));
    }
    models_.Set(gauges.models);
    if (gauges.certificate_expiry) {
      certificate_expiry_.Add({}).Set(
          static_cast<double>(absl::ToUnixSeconds(*gauges.certificate_expiry)));
    }
    resident_.Set(static_cast<double>(ResidentBytes()));
    descriptors_.Set(static_cast<double>(OpenDescriptors()));
    RaiseTo(ProcessorSeconds(), processor_seconds_);
    return prometheus::TextSerializer().Serialize(registry_.Collect());
  }

 private:
  struct EndSeries {
    Counter& requests;
    Histogram& seconds;
  };

  ModelSeries MakeModelSeries(const prometheus::Labels& labels) {
    return {tokens_.Add(labels),
            padding_avoided_.Add(labels),
            fully_masked_rows_.Add(labels),
            dead_rows_.Add(labels),
            nonfinite_requests_.Add(labels),
            queue_seconds_.Add(labels, SecondsBuckets()),
            copy_seconds_.Add(labels, SecondsBuckets()),
            compute_seconds_.Add(labels, SecondsBuckets()),
            batch_tokens_.Add(labels, token_buckets_),
            batch_requests_.Add(labels, request_buckets_),
            cost_ratio_.Add(labels, ratio_buckets_),
            slack_seconds_.Add(labels, SecondsBuckets())};
  }

  // Sets a counter, of a total that is kept elsewhere. It never goes down, also if another scrape
  // has read a later total in the meantime.
  void RaiseTo(double total, Counter& counter) {
    absl::MutexLock lock(&raise_mutex_);
    counter.Increment(std::max(0.0, total - counter.Value()));
  }

  Family<Counter>& MakeCounters(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry_);
  }
  Family<Histogram>& MakeHistograms(const char* name, const char* help) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry_);
  }
  Family<Gauge>& MakeGauges(const char* name, const char* help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry_);
  }
  Gauge& MakeGauge(const char* name, const char* help, const prometheus::Labels& labels = {}) {
    return MakeGauges(name, help).Add(labels);
  }

  std::atomic<int64_t> answered_ = 0;
  FiguresByModel figures_;
  prometheus::Registry registry_;
  const Boundaries token_buckets_ = PowersOfTwo(16);
  const Boundaries request_buckets_ = PowersOfTwo(8);
  const Boundaries ratio_buckets_ = {0.25, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 4};
  Family<Counter>& requests_ =
      MakeCounters("attendant_requests_total", "Requests that have ended, by status code.");
  Family<Histogram>& request_seconds_ = MakeHistograms(
      "attendant_request_seconds",
      "Time from the headers of a request, or the arrival of a stream's item, to its end.");
  Family<Counter>& refusals_ =
      MakeCounters("attendant_refusals_total",
                   "Requests that might be served at another time, by reason of the refusal.");
  Counter& unsent_answers_ =
      MakeCounters("attendant_unsent_answers_total",
                   "Calls that were ended because their answer did not leave in time.")
          .Add({});
  Family<Counter>& tokens_ =
      MakeCounters("attendant_tokens_total", "Kept tokens of answered requests.");
  Family<Counter>& padding_avoided_ =
      MakeCounters("attendant_padding_tokens_avoided_total",
                   "Padded tokens of answered requests, never computed.");
  Family<Counter>& fully_masked_rows_ =
      MakeCounters("attendant_keyless_rows_total",
                   "Query rows, times heads, that had no key left: their context is zero.");
  Family<Counter>& dead_rows_ = MakeCounters(
      "attendant_dead_rows_total",
      "Tokens computed for requests whose deadline had passed before their batch began.");
  Family<Counter>& nonfinite_requests_ = MakeCounters(
      "attendant_nonfinite_requests_total", "Requests with NaN or infinity in their input.");
  Family<Histogram>& queue_seconds_ = MakeHistograms(
      "attendant_queue_seconds", "Time that an answered request waited in the queue.");
  Family<Histogram>& copy_seconds_ =
      MakeHistograms("attendant_batch_copy_seconds", "Time for a batch's rows in and results out.");
  Family<Histogram>& compute_seconds_ =
      MakeHistograms("attendant_batch_compute_seconds", "Time to compute a batch.");
  Family<Histogram>& batch_tokens_ =
      MakeHistograms("attendant_batch_tokens", "Kept tokens of a batch.");
  Family<Histogram>& batch_requests_ =
      MakeHistograms("attendant_batch_requests", "Requests of a batch.");
  Family<Histogram>& cost_ratio_ = MakeHistograms(
      "attendant_batch_cost_ratio",
      "Measured time that a batch takes its instance, over the predicted time.");
  Family<Histogram>& slack_seconds_ =
      MakeHistograms("attendant_deadline_slack_seconds",
                     "Time left to the deadline of a request, or of a part, when it was computed.");
  Family<Counter>& batches_ = MakeCounters(
      "attendant_batches_total", "Batches that were computed, by what kept more from joining.");
  Gauge& inflight_ = MakeGauge("attendant_inflight_requests",
                               "Requests from their headers until their answer has left.");
  Gauge& queue_requests_ = MakeGauge("attendant_queue_requests", "Requests waiting in the queue.");
  Gauge& queue_tokens_ = MakeGauge("attendant_queue_tokens", "Kept tokens waiting in the queue.");
  Gauge& queue_seconds_waiting_ =
      MakeGauge("attendant_queue_predicted_seconds",
                "Predicted time of one instance for what waits in the queue.");
  Gauge& receiving_bytes_ =
      MakeGauge("attendant_receiving_bytes", "Memory granted to requests being received.");
  Gauge& request_bytes_ =
      MakeGauge("attendant_request_bytes",
                "Memory of requests that wait or are computed, with that of their answers.");
  Gauge& answer_bytes_ =
      MakeGauge("attendant_answer_bytes", "Memory of answers that have not left yet.");
  Gauge& budget_bytes_ =
      MakeGauge("attendant_budget_bytes",
                "Memory that requests, answers and registered memories may take together.");
  Gauge& open_streams_ =
      MakeGauge("attendant_open_streams", "EncodeStreams and streams of reflection that are open.");
  Gauge& ready_ = MakeGauge("attendant_ready", "1 if the server takes requests.");
  Gauge& registered_memories_ =
      MakeGauge("attendant_registered_memories", "Memories that PutMemory has registered.");
  Gauge& registered_memory_bytes_ =
      MakeGauge("attendant_registered_memory_bytes",
                "Bytes of registered memories, also of those that only running requests use.");
  Gauge& stream_sequences_ = MakeGauge("attendant_stream_sequences",
                                       "Sequences that come in parts over open EncodeStreams.");
  Gauge& stream_sequence_bytes_ = MakeGauge("attendant_stream_sequence_bytes",
                                            "Bytes that are kept between the parts of sequences.");
  Family<Counter>& cache_hits_ = MakeCounters(
      "attendant_cache_hits_total", "Results that were found in the cache: of sequences or texts.");
  Family<Counter>& cache_misses_ = MakeCounters(
      "attendant_cache_misses_total", "Results that were looked for in the cache in vain.");
  Gauge& cache_entries_ = MakeGauge("attendant_cache_entries", "Results in the cache.");
  Gauge& cache_bytes_ = MakeGauge("attendant_cache_bytes",
                                  "Memory of the results in the cache, of at most --cache-bytes.");
  Gauge& connections_ = MakeGauge("attendant_connections", "Open gRPC connections.");
  Family<Counter>& refused_connections_ = MakeCounters(
      "attendant_refused_connections_total",
      "gRPC connections that were closed at once, or cut later for a flood of frames.");
  Family<Counter>& model_loads_ =
      MakeCounters("attendant_model_loads_total", "Versions of the model repository, by result.");
  Family<Counter>& reloads_ =
      MakeCounters("attendant_reloads_total",
                   "Times that changed files were read again; failed: the last good ones stay.");
  Family<Counter>& token_refusals_ =
      MakeCounters("attendant_token_refusals_total",
                   "Calls whose bearer token was missing, unknown or for something else.");
  Family<Gauge>& certificate_expiry_ =
      MakeGauges("attendant_certificate_expiry_timestamp_seconds",
                 "When the first of the server's certificates in use expires, since unix epoch.");
  ModelGaugeFamilies models_{registry_};
  Gauge& descriptors_ = MakeGauge("process_open_fds", "Number of open file descriptors.");
  absl::Mutex raise_mutex_;
  Counter& processor_seconds_ =
      MakeCounters("process_cpu_seconds_total", "Total user and system CPU time in seconds.")
          .Add({});
  Gauge& resident_ = MakeGauge("process_resident_memory_bytes", "Resident memory size in bytes.");
  Gauge& start_time_ = MakeGauge("process_start_time_seconds",
                                 "Start time of the process since unix epoch in seconds.");

  SeriesCache<std::string, ModelSeries> by_model_;
  SeriesCache<std::tuple<std::string, std::string, absl::StatusCode>, EndSeries> by_end_;
  SeriesCache<std::tuple<std::string, std::string>, Counter*> by_refusal_;  // method, reason
  SeriesCache<std::tuple<std::string, std::string>, Counter*> by_close_;    // model, close
};

ServerMetrics::ServerMetrics(const std::string& version, const std::string& isa,
                             const std::string& onednn)
    : impl_(std::make_unique<Impl>()) {
  impl_->SetBuildInfo(version, isa, onednn);
}

ServerMetrics::~ServerMetrics() = default;

void ServerMetrics::RecordRequest(const RequestRecord& record) {
  impl_->CountRequest(record);
  impl_->figures().Add(record);
  if (record.code != absl::StatusCode::kOk || record.model.empty()) return;
  const Impl::ModelSeries& series = impl_->ForModel(record.model);
  series.tokens.Increment(static_cast<double>(record.tokens));
  series.padding_avoided.Increment(static_cast<double>(record.padded_tokens - record.tokens));
  if (record.queued) series.queue_seconds.Observe(absl::ToDoubleSeconds(*record.queued));
}

void ServerMetrics::RecordRefusedToken(const std::string& scope, absl::StatusCode code) {
  impl_->CountRefusedToken(scope, code);
}

void ServerMetrics::CountUnsentAnswer() { impl_->CountUnsentAnswer(); }

int64_t ServerMetrics::answered() const { return impl_->answered(); }

void ServerMetrics::RecordBatch(const BatchRecord& record) {
  const Impl::ModelSeries& series = impl_->ForModel(record.model);
  series.copy_seconds.Observe(absl::ToDoubleSeconds(record.copy_in + record.copy_out));
  series.compute_seconds.Observe(absl::ToDoubleSeconds(record.compute));
  series.batch_tokens.Observe(static_cast<double>(record.tokens));
  series.batch_requests.Observe(static_cast<double>(record.requests));
  for (const absl::Duration slack : record.slacks) {
    series.slack_seconds.Observe(absl::ToDoubleSeconds(slack));
  }
  impl_->CountBatch(record);
  impl_->figures().Add(record);
  if (record.cost_ratio > 0) series.cost_ratio.Observe(record.cost_ratio);
  series.fully_masked_rows.Increment(static_cast<double>(record.fully_masked_rows));
  series.dead_rows.Increment(static_cast<double>(record.dead_rows));
  series.nonfinite_requests.Increment(static_cast<double>(record.nonfinite_requests));
}

ModelFigures ServerMetrics::FiguresOf(const std::string& model) const {
  return impl_->figures().Find(model);
}

void ServerMetrics::RecordRefusedConnection(const std::string& reason) {
  impl_->CountRefusedConnection(reason);
}

void ServerMetrics::RecordModelLoad(const std::string& model, bool ok) {
  impl_->CountModelLoad(model, ok);
}

void ServerMetrics::RecordReload(const std::string& what, bool ok) { impl_->CountReload(what, ok); }

std::string ServerMetrics::Scrape(const ServerGauges& gauges) const {
  return impl_->Scrape(gauges);
}

}  // namespace attendant::server
