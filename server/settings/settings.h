// The server's settings. Each member of Settings has a row in the table of settings_table.h, which
// defines its flag, ATTENDANT_* variable, config file key, bounds and help text. The members'
// initial values are the defaults.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "engine/base/compute_type.h"
#include "engine/checkpoint/files/choices.h"
#include "engine/kernels/isa.h"
#include "engine/layers/state/row_plan.h"
#include "server/settings/network.h"

namespace attendant::server {

// The commit of a Hugging Face Hub repository, "ORG/REPO". Empty for files from elsewhere.
struct HubOrigin {
  std::string repository;
  std::string commit;

  bool operator==(const HubOrigin&) const = default;
};

// One --model NAME=SOURCE[,key=value…]. The choices have the keys of the same names, prune_file the
// key prune; for an overlay, it prunes heads of its base.
struct ModelSetting : CheckpointChoices {
  std::string name;  // see IsModelName
  // A source as in engine/checkpoint/checkpoint.h, or hf:ORG/REPO[@REVISION]. For an overlay, the
  // name of its base model.
  std::string source;
  // For a source hf:…, once pulled: the directory with its files, and their origin.
  std::string pulled_folder;
  HubOrigin origin;
  std::string overlay;  // key overlay: see engine/checkpoint/norm_overlay.h
  ComputeMode compute;  // keys dtype, emulate, gemm and weights

  // Returns the source for the engine to open.
  const std::string& place() const { return pulled_folder.empty() ? source : pulled_folder; }

  bool operator==(const ModelSetting&) const = default;
};

enum class NumaPolicy { kAuto, kOff };
enum class NonfinitePolicy { kPropagate, kReject };
enum class LogFormat { kText, kJson };

// Members are named after their flags, and documented by the flags' help texts. Memory sizes are in
// bytes.
struct Settings {
  std::vector<ModelSetting> models;            // --model, which may be repeated
  std::map<std::string, std::string> aliases;  // alias -> model name
  std::string model_repository;                // empty: no repository
  absl::Duration repository_poll = absl::Seconds(5);
  int64_t repository_width = 1024;  // columns
  std::string model_cache;          // empty: the Hub library's cache
  bool offline = false;
  int64_t max_model_bytes = int64_t{64} << 30;
  int64_t memory_limit_bytes = 0;  // 0: the cgroup's limit or the machine's memory

  std::string address = "0.0.0.0";        // or, for gRPC, unix:PATH
  int port = 8001;                        // gRPC; 0 picks a free port
  std::string http_address;               // empty: `address`, or 127.0.0.1 with a Unix socket
  int http_port = 8002;                   // 0 picks a free port
  bool rest = true;                       // serve inference and texts over HTTP
  std::vector<std::string> cors_origins;  // "*" allows all
  bool page = true;                       // at / of the HTTP port
  std::string port_file;                  // file for the ports of the ready server; or empty
  std::string tls_cert;                   // PEM file, like the next two; empty: no TLS
  std::string tls_key;
  std::string token_file;     // empty: calls need no token
  std::string tls_client_ca;  // empty: no client certificates
  std::vector<Network> trusted_proxies;
  int max_connections = 1024;
  int max_connections_per_address = 64;
  absl::Duration max_connection_age = absl::Hours(1);
  absl::Duration http_idle_timeout = absl::Seconds(75);

  int instances = 0;             // 0: from the CPU budget
  int threads_per_instance = 0;  // 0: from the CPU budget
  NumaPolicy numa = NumaPolicy::kAuto;
  RowPolicy row_plan = RowPolicy::kTimed;
  Isa isa = Isa::kBest;
  NonfinitePolicy nonfinite = NonfinitePolicy::kPropagate;

  int64_t max_batch_tokens = 1024;
  absl::Duration max_batch_seconds = absl::Milliseconds(25);
  absl::Duration max_queue_delay = absl::ZeroDuration();
  int64_t max_queue_requests = 256;
  int64_t max_queue_tokens = 65536;
  absl::Duration max_queue_seconds = absl::Seconds(30);
  absl::Duration default_deadline = absl::Seconds(60);  // of calls without one

  int64_t max_request_tokens = 16384;
  int64_t max_answer_bytes = int64_t{256} << 20;
  int64_t max_inflight = 256;  // slots of the admission
  int64_t max_streams = 256;
  int peer_reserve = 10;  // percent
  absl::Duration receive_timeout = absl::Seconds(10);
  int64_t min_receive_rate = int64_t{256} << 10;  // bytes per second
  absl::Duration send_timeout = absl::Seconds(30);
  int stream_window = 16;  // items of one EncodeStream in flight
  absl::Duration stream_idle_timeout = absl::Minutes(5);

  int64_t max_registered_bytes = int64_t{256} << 20;
  absl::Duration max_registered_age = absl::Minutes(10);

  int64_t cache_bytes = 0;  // 0: no cache

  absl::Duration lame_duck = absl::ZeroDuration();
  absl::Duration drain_timeout = absl::Seconds(30);
  LogFormat log_format = LogFormat::kText;
  std::string log_level = "info";
  absl::Duration slow_request = absl::ZeroDuration();  // 0: never
};

}  // namespace attendant::server
