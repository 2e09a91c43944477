// Everything a user can set, from one table: flag, ATTENDANT_* variable, config file, default,
// bounds, help.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "engine/base/compute_type.h"
#include "engine/kernels/isa.h"
#include "engine/layers/state/row_plan.h"

namespace attendant::server {

// --model NAME=SOURCE[,key=value…]
struct ModelSetting {
  std::string name;                      // [A-Za-z0-9._-]{1,128}, not starting with a dot
  std::string source;                    // see engine/checkpoint/checkpoint.h; beside an overlay
                                         // the name of another model, its base
  std::string overlay;                   // key overlay: see engine/checkpoint/norm_overlay.h
  std::string weights_sha256;            // key weights-sha256
  bool allow_nonfinite_weights = false;  // key allow-nonfinite-weights
  std::string prune_file;                // key prune; beside an overlay, of heads of its base
  ComputeMode compute;                   // keys dtype, emulate and gemm

  bool operator==(const ModelSetting&) const = default;
};

enum class NumaPolicy { kAuto, kOff };
enum class NonfinitePolicy { kPropagate, kReject };
enum class LogFormat { kText, kJson };

// Members are named as their flags. 0 in `port` and `http_port`: a free one is picked.
struct Settings {
  std::vector<ModelSetting> models;  // --model, repeatable
  int64_t max_model_bytes = int64_t{64} << 30;
  int64_t memory_limit_bytes = 0;  // 0: what the cgroup or the machine has

  std::string address = "0.0.0.0";
  int port = 8001;  // gRPC
  int http_port = 8002;
  std::string port_file;  // where the ports go once the server is ready; empty: nowhere

  int instances = 0;             // 0: chosen from the CPU budget
  int threads_per_instance = 0;  // 0: chosen
  NumaPolicy numa = NumaPolicy::kAuto;
  RowPolicy row_plan = RowPolicy::kTimed;
  Isa isa = Isa::kBest;
  NonfinitePolicy nonfinite = NonfinitePolicy::kPropagate;

  int64_t max_batch_tokens = 1024;
  absl::Duration max_queue_delay = absl::ZeroDuration();
  int64_t max_queue_requests = 256;
  int64_t max_queue_tokens = 65536;
  int64_t max_queue_bytes = int64_t{1} << 30;

  int64_t max_request_tokens = 16384;
  int64_t max_answer_bytes = int64_t{256} << 20;
  int64_t max_inflight = 256;  // slots
  int64_t receive_memory_bytes = int64_t{512} << 20;
  absl::Duration receive_timeout = absl::Seconds(10);
  int stream_window = 16;  // items of one EncodeStream in flight
  absl::Duration stream_idle_timeout = absl::Minutes(5);

  int64_t max_registered_bytes = int64_t{256} << 20;  // of PutMemory
  absl::Duration max_registered_age = absl::Minutes(10);

  absl::Duration drain_timeout = absl::Seconds(30);
  LogFormat log_format = LogFormat::kText;
  std::string log_level = "info";
};

}  // namespace attendant::server
