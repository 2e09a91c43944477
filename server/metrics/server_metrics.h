// The server's metrics, exported as Prometheus text. There is no global registry: the server owns
// one object and passes it to its parts.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/metrics/gauges.h"

namespace attendant::server {

// The record of a finished request.
struct RequestRecord {
  std::string method;  // "Attend"
  std::string model;   // name of a served model, or empty; never any other text from the client
  absl::StatusCode code = absl::StatusCode::kOk;
  int64_t tokens = 0;                    // kept tokens
  int64_t padded_tokens = 0;             // B x S, or T in the packed layout
  int64_t sequences = 0;                 // 0 for calls that compute nothing
  std::optional<absl::Duration> queued;  // time in the queue, if the request was computed
  absl::Duration elapsed = {};           // from its headers, or its arrival as a stream's item
  std::string reason = {};               // of a refusal; see refusal.h
};

// The record of a computed batch.
struct BatchRecord {
  std::string model;
  int64_t tokens = 0;  // kept tokens
  int64_t requests = 0;
  absl::Duration copy_in;  // of rows
  absl::Duration compute;
  absl::Duration copy_out;  // of results
  absl::Time finished = {};
  double cost_ratio = 0;                    // measured over predicted time; 0 without a prediction
  int64_t fully_masked_rows = 0;            // query rows times heads without any key
  int64_t nonfinite_requests = 0;           // with NaN or infinity in their input
  std::string close = {};                   // why the batch was closed
  std::vector<absl::Duration> slacks = {};  // time left to the requests' deadlines
  int64_t dead_rows = 0;  // tokens of requests that had expired before the batch began
};

// Totals of a model's requests and batches, for clients of the Open Inference Protocol. Times of
// batches count once for each of their requests.
struct ModelFigures {
  int64_t answered = 0;  // requests with sequences
  absl::Duration answered_time;
  int64_t failed = 0;  // after validation
  absl::Duration failed_time;
  absl::Duration queued;
  absl::Duration copied_in;
  absl::Duration computed;
  absl::Duration copied_out;
  int64_t sequences = 0;  // of answered requests
  int64_t batches = 0;
  absl::Time last = absl::InfinitePast();  // end of the latest batch
};

// Thread-safe. The series are: attendant_requests_total{method,model,code};
// attendant_request_seconds{method,model,code} (histogram);
// attendant_refusals_total{method,reason}; attendant_unsent_answers_total;
// attendant_tokens_total{model}; attendant_padding_tokens_avoided_total{model};
// attendant_queue_seconds{model}, attendant_batch_copy_seconds{model},
// attendant_batch_compute_seconds{model}, attendant_batch_tokens{model},
// attendant_batch_requests{model}, attendant_batch_cost_ratio{model},
// attendant_deadline_slack_seconds{model} (histograms); attendant_batches_total{model,close};
// attendant_dead_rows_total{model}; attendant_keyless_rows_total{model};
// attendant_nonfinite_requests_total{model}; attendant_inflight_requests, attendant_queue_requests,
// attendant_queue_tokens, attendant_queue_predicted_seconds, attendant_open_streams,
// attendant_receiving_bytes, attendant_request_bytes, attendant_answer_bytes,
// attendant_budget_bytes, attendant_ready, attendant_registered_memories,
// attendant_registered_memory_bytes, attendant_stream_sequences, attendant_stream_sequence_bytes,
// attendant_connections, attendant_cache_entries, attendant_cache_bytes,
// attendant_model_info{model,version,family,compute_type,layers,heads,hidden_size},
// attendant_model_bytes{model,part}, attendant_cost_seconds_per_layer{model},
// attendant_cost_flops_per_second{model,part}, attendant_cost_correction{model},
// attendant_certificate_expiry_timestamp_seconds (gauges);
// attendant_cache_hits_total{kind}, attendant_cache_misses_total{kind};
// attendant_model_loads_total{model,result}; attendant_refused_connections_total{reason};
// attendant_reloads_total{what,result}; attendant_token_refusals_total{scope,code};
// attendant_build_info{version,isa,onednn}; process_resident_memory_bytes, process_open_fds,
// process_start_time_seconds, process_cpu_seconds_total.
//
// Frequently recorded series are looked up by labels only once.
class ServerMetrics {
 public:
  ServerMetrics(const std::string& version, const std::string& isa, const std::string& onednn);
  ~ServerMetrics();

  void RecordRequest(const RequestRecord& record);
  // Returns the number of requests that ended with OK.
  int64_t answered() const;
  void RecordBatch(const BatchRecord& record);
  // Returns the totals of a model's requests and batches, including earlier loads of it.
  ModelFigures FiguresOf(const std::string& model) const;
  // Records a reload of changed files of `what`, such as "certificates", and whether it succeeded.
  void RecordReload(const std::string& what, bool ok);
  // Counts a version of the model repository that was loaded, or failed to load.
  void RecordModelLoad(const std::string& model, bool ok);
  // `reason` is one of a closed list, such as "address".
  void RecordRefusedConnection(const std::string& reason);
  // Counts a call with a bearer token not valid for `scope`, such as "metrics".
  void RecordRefusedToken(const std::string& scope, absl::StatusCode code);
  // Counts a call that was ended because its response was not sent in time.
  void CountUnsentAnswer();

  // Returns all series in the Prometheus text format, with `gauges` and those of the process.
  std::string Scrape(Gauges gauges) const;

 private:
  struct Series;

  void CountFigures(const RequestRecord& record);

  std::unique_ptr<Series> series_;
};

}  // namespace attendant::server
