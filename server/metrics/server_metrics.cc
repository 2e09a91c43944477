#include "server/metrics/server_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <atomic>
#include <ctime>
#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/metrics/process_figures.h"

namespace attendant::server {

// Creates a series on the first use of its key, and later returns it without looking it up by
// labels. References are valid during the cache's lifetime. Thread-safe.
template <typename Key, typename Series>
class SeriesCache {
 public:
  // `key` may be a tuple of references.
  template <typename AnyKey, typename Make>
  const Series& Get(const AnyKey& key, Make make) {
    {
      absl::ReaderMutexLock lock(&mutex_);
      if (const auto found = series_.find(key); found != series_.end()) return found->second;
    }
    absl::MutexLock lock(&mutex_);
    return series_.try_emplace(Key(key), make()).first->second;
  }

 private:
  absl::Mutex mutex_;
  // A map, because its entries do not move.
  std::map<Key, Series, std::less<>> series_ ABSL_GUARDED_BY(mutex_);
};

namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Histogram;
using prometheus::Labels;
using prometheus::Registry;
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

// A registry returns the family that it already has of a name.
Family<Counter>& Counters(Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}

Counter& AddCounter(Registry& registry, const char* name, const char* help,
                    const Labels& labels = {}) {
  return Counters(registry, name, help).Add(labels);
}

Histogram& AddHistogram(Registry& registry, const char* name, const char* help,
                        const Labels& labels, const Boundaries& buckets = SecondsBuckets()) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add(labels, buckets);
}

}  // namespace

struct ServerMetrics::Series {
  // The series of one model, created when the model is first recorded. Their number is bounded,
  // because only the names of served models are recorded.
  struct ModelSeries {
    Registry& registry;
    Labels labels;
    Counter& tokens = AddCounter(registry, "attendant_tokens_total",
                                 "Kept tokens of successful requests.", labels);
    Counter& padding_avoided =
        AddCounter(registry, "attendant_padding_tokens_avoided_total",
                   "Padded tokens of successful requests, never computed.", labels);
    Counter& fully_masked_rows =
        AddCounter(registry, "attendant_keyless_rows_total",
                   "Query rows, times heads, with all keys masked: their context is zero.", labels);
    Counter& dead_rows = AddCounter(
        registry, "attendant_dead_rows_total",
        "Tokens computed for requests whose deadline had passed before their batch began.", labels);
    Counter& nonfinite_requests =
        AddCounter(registry, "attendant_nonfinite_requests_total",
                   "Requests with NaN or infinity in their input.", labels);
    Histogram& queue_seconds =
        AddHistogram(registry, "attendant_queue_seconds",
                     "Time that a successful request waited in the queue.", labels);
    Histogram& copy_seconds =
        AddHistogram(registry, "attendant_batch_copy_seconds",
                     "Time to copy a batch's rows in and its results out.", labels);
    Histogram& compute_seconds = AddHistogram(registry, "attendant_batch_compute_seconds",
                                              "Time to compute a batch.", labels);
    Histogram& batch_tokens = AddHistogram(registry, "attendant_batch_tokens",
                                           "Kept tokens in a batch.", labels, PowersOfTwo(16));
    Histogram& batch_requests = AddHistogram(registry, "attendant_batch_requests",
                                             "Requests in a batch.", labels, PowersOfTwo(8));
    Histogram& cost_ratio =
        AddHistogram(registry, "attendant_batch_cost_ratio",
                     "Measured time of a batch on its instance, over the predicted time.", labels,
                     {0.25, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 4});
    Histogram& slack_seconds = AddHistogram(
        registry, "attendant_deadline_slack_seconds",
        "Time left to the deadline when a request, or a slice of it, was computed.", labels);
  };

  struct EndSeries {
    Registry& registry;
    Labels labels;
    Counter& requests = AddCounter(registry, "attendant_requests_total",
                                   "Requests that have ended, by status code.", labels);
    Histogram& seconds = AddHistogram(
        registry, "attendant_request_seconds",
        "Time from the headers of a request, or the arrival of a stream's item, to its end.",
        labels);
  };

  const ModelSeries& ForModel(const std::string& model) {
    return by_model.Get(model, [&] { return ModelSeries{registry, {{"model", model}}}; });
  }

  const EndSeries& ForEnd(const RequestRecord& record) {
    return by_end.Get(std::tie(record.method, record.model, record.code), [&] {
      return EndSeries{registry,
                       {{"method", record.method},
                        {"model", record.model},
                        {"code", absl::StatusCodeToString(record.code)}}};
    });
  }

  const Labels build;
  const std::time_t started = std::time(nullptr);
  std::atomic<int64_t> answered = 0;
  Registry registry{};
  Family<Counter>& refusals =
      Counters(registry, "attendant_refusals_total",
               "Refused requests that might succeed at another time, by reason.");
  Counter& unsent_answers = AddCounter(registry, "attendant_unsent_answers_total",
                                       "Calls ended because their response was not sent in time.");
  Family<Counter>& batches = Counters(registry, "attendant_batches_total",
                                      "Computed batches, by the reason for closing them.");
  Family<Counter>& refused_connections =
      Counters(registry, "attendant_refused_connections_total",
               "gRPC connections closed at once, or cut later for a flood of frames.");
  Family<Counter>& model_loads = Counters(registry, "attendant_model_loads_total",
                                          "Loads of model repository versions, by result.");
  Family<Counter>& reloads =
      Counters(registry, "attendant_reloads_total",
               "Reloads of changed files; after a failure the last good ones stay in use.");
  Family<Counter>& token_refusals =
      Counters(registry, "attendant_token_refusals_total",
               "Calls with a bearer token that was missing, unknown or of another scope.");
  SeriesCache<std::string, ModelSeries> by_model = {};
  SeriesCache<std::tuple<std::string, std::string, absl::StatusCode>, EndSeries> by_end = {};
  absl::Mutex mutex{};
  std::map<std::string, ModelFigures> figures ABSL_GUARDED_BY(mutex) = {};  // by model
};

ServerMetrics::ServerMetrics(const std::string& version, const std::string& isa,
                             const std::string& onednn)
    : series_(new Series{{{"version", version}, {"isa", isa}, {"onednn", onednn}}}) {}

ServerMetrics::~ServerMetrics() = default;

void ServerMetrics::RecordRequest(const RequestRecord& record) {
  const Series::EndSeries& ends = series_->ForEnd(record);
  const bool ok = record.code == absl::StatusCode::kOk;
  ends.requests.Increment();
  if (ok) ++series_->answered;
  ends.seconds.Observe(absl::ToDoubleSeconds(record.elapsed));
  if (!record.reason.empty()) {
    series_->refusals.Add({{"method", record.method}, {"reason", record.reason}}).Increment();
  }
  if (record.model.empty()) return;
  if (record.sequences > 0) CountFigures(record);
  if (!ok) return;
  const Series::ModelSeries& series = series_->ForModel(record.model);
  series.tokens.Increment(static_cast<double>(record.tokens));
  series.padding_avoided.Increment(static_cast<double>(record.padded_tokens - record.tokens));
  if (record.queued) series.queue_seconds.Observe(absl::ToDoubleSeconds(*record.queued));
}

void ServerMetrics::CountFigures(const RequestRecord& record) {
  absl::MutexLock lock(&series_->mutex);
  ModelFigures& figures = series_->figures[record.model];
  if (record.code != absl::StatusCode::kOk) {
    ++figures.failed;
    figures.failed_time += record.elapsed;
    return;
  }
  ++figures.answered;
  figures.answered_time += record.elapsed;
  figures.queued += record.queued.value_or(absl::ZeroDuration());
  figures.sequences += record.sequences;
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
  if (record.cost_ratio > 0) series.cost_ratio.Observe(record.cost_ratio);
  series.fully_masked_rows.Increment(static_cast<double>(record.fully_masked_rows));
  series.dead_rows.Increment(static_cast<double>(record.dead_rows));
  series.nonfinite_requests.Increment(static_cast<double>(record.nonfinite_requests));
  series_->batches.Add({{"model", record.model}, {"close", record.close}}).Increment();
  absl::MutexLock lock(&series_->mutex);
  ModelFigures& figures = series_->figures[record.model];
  ++figures.batches;
  figures.copied_in += record.requests * record.copy_in;
  figures.computed += record.requests * record.compute;
  figures.copied_out += record.requests * record.copy_out;
  figures.last = record.finished;
}

ModelFigures ServerMetrics::FiguresOf(const std::string& model) const {
  absl::MutexLock lock(&series_->mutex);
  const auto found = series_->figures.find(model);
  return found == series_->figures.end() ? ModelFigures() : found->second;
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

std::string ServerMetrics::Scrape(Gauges gauges) const {
  gauges.Add("attendant_build_info", "1, with the versions as labels.", 1, series_->build);
  gauges.Add("process_start_time_seconds", "Start time of the process since unix epoch in seconds.",
             series_->started);
  gauges.Add("process_resident_memory_bytes", "Resident memory size in bytes.", ResidentBytes());
  gauges.Add("process_open_fds", "Number of open file descriptors.", OpenDescriptors());
  gauges.AddTotal("process_cpu_seconds_total", "Total user and system CPU time in seconds.",
                  ProcessorSeconds());
  std::vector<prometheus::MetricFamily> families = series_->registry.Collect();
  families.insert(families.end(), gauges.families().begin(), gauges.families().end());
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace attendant::server
