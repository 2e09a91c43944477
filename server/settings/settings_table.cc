#include "server/settings/settings_table.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace attendant::server {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;
constexpr int64_t kTiB = int64_t{1} << 40;
// The size of a gRPC message has to fit into an int, and an answer has some bytes besides its
// tensors.
constexpr int64_t kMostAnswerBytes = 2 * kGiB - kMiB;

using Rows = std::vector<SettingRow>;

template <typename T>
using Choices = std::vector<Named<T>>;

Rows ModelRows() {
  const std::string group = "Models";
  return {
      {group, "model", "NAME=SOURCE[,key=value...]",
       "Serve SOURCE as model NAME; may be repeated (in the variable, separate models by ';'). "
       "SOURCE is a checkpoint directory, hf:ORG/REPO[@REVISION] for a repository of the Hugging "
       "Face Hub (without NAME=, served as ORG/REPO), worked-example, or synthetic:NAME such as "
       "synthetic:bert-base. Keys: dtype=f32, bf16x3, bf16 or int8 sets the compute type of linear "
       "layers (bf16x3 requires AMX, bf16 AVX512_BF16, AMX or BF16 of arm64); emulate=true "
       "performs the same rounding in float32 on any CPU; gemm=onednn, tiles or vector selects the "
       "matrix products of oneDNN or the server's own for AMX or SIMD (default auto: the fastest); "
       "weights=f32, bf16 or f16 sets how f32 stores its weights (default auto: as in the file); "
       "adapter=DIR merges a PEFT LoRA adapter; task=NAME merges one of the checkpoint's own "
       "adapters (jina-embeddings-v3); overlay=FILE makes SOURCE the name of another model, shares "
       "its weights and replaces the norms in FILE (safetensors); pooling=mean, first_token, "
       "last_token, max or pooler sets the pooling of texts and MODEL_POOLING; pooling=yes_no "
       "makes a causal language model a reranker by these words; causal=false lets the tokens of a "
       "causal model attend to later tokens; prune=FILE removes the attention heads listed in a "
       "JSON file, {\"0\": [2, 5]} (with overlay: heads of its base); tower=text or vision serves "
       "that tower of CLIP or SigLIP; route=query or document serves that route of a Router; "
       "weights-sha256=HEX refuses other weight files; allow-nonfinite-weights=true accepts NaN "
       "and infinity. Without any --model and without --model-repository, the server serves "
       "worked-example.",
       ModelsKind()},
      {group, "alias", "NAME=MODEL",
       "Also serve MODEL as NAME, such as text-embedding-3-small=minilm for clients that request "
       "OpenAI models; may be repeated (in the variable, separate aliases by ';').",
       AliasesKind()},
      {group, "model-repository", "DIR",
       "Serve the newest version of each model in DIR. NAME/VERSION/ or ORG/NAME/VERSION/ is a "
       "checkpoint directory; VERSION is a positive integer. Versions can be added and removed "
       "while the server runs: prepare a directory elsewhere, then rename it into place. A file "
       "attendant.options in a version holds keys of --model, such as dtype=int8. Empty: no "
       "repository.",
       TextKind(&Settings::model_repository)},
      {group, "repository-poll", "DURATION", "Interval between scans of --model-repository.",
       DurationKind(&Settings::repository_poll, absl::Milliseconds(10), absl::Hours(24))},
      {group, "repository-width", "COLUMNS",
       "Widest input row that a model of --model-repository may have. It fixes the size of the "
       "largest message at startup.",
       IntegerKind(&Settings::repository_width, 1, kMiB)},
      {group, "model-cache", "DIR",
       "Cache for Hub models, in the layout of the Hub's own library, so that both can share it. "
       "Empty: that library's cache (HF_HUB_CACHE, HF_HOME/hub, or "
       "~/.cache/huggingface/hub). Private and gated repositories require HF_TOKEN or a login by "
       "`hf auth login`; HF_ENDPOINT selects another Hub.",
       TextKind(&Settings::model_cache)},
      {group, "offline", "[on|off]",
       "Use the models in --model-cache without connecting to the Hub, like HF_HUB_OFFLINE=1.",
       SwitchKind(&Settings::offline)},
      {group, "max-model-bytes", "BYTES", "Largest total size of a model's weight files.",
       BytesKind(&Settings::max_model_bytes, 1, 16 * kTiB)},
      {group, "memory-limit-bytes", "BYTES",
       "Memory limit of the server. After weights, activations and gRPC, the rest is available to "
       "requests, from their arrival until their response is sent, and to registered memories. 0: "
       "the cgroup's limit; without one, the machine's memory, of which requests use at most 2 "
       "GiB.",
       BytesKind(&Settings::memory_limit_bytes, 0, 16 * kTiB)},
  };
}

Rows NetworkRows() {
  const std::string group = "Network";
  const Choices<bool> switches = {{"on", true}, {"off", false}};
  return {
      {group, "address", "ADDRESS",
       "Address to listen on for gRPC and, unless --http-address is set, for HTTP; :: also accepts "
       "IPv4. unix:PATH is a Unix socket for gRPC, open to the owner and the group of the process; "
       "HTTP then listens on 127.0.0.1.",
       AddressKind(&Settings::address, false)},
      {group, "port", "PORT", "gRPC port; 0 picks a free one.",
       IntegerKind(&Settings::port, 0, 65535)},
      {group, "http-address", "ADDRESS",
       "Address to listen on for HTTP; empty: the same as --address.",
       AddressKind(&Settings::http_address, true)},
      {group, "http-port", "PORT",
       "Port of /metrics, /healthz, /readyz, /v2 and the page at /; 0 picks a free one.",
       IntegerKind(&Settings::http_port, 0, 65535)},
      {group, "http-idle-timeout", "DURATION",
       "How long an idle HTTP connection stays open between requests.",
       DurationKind(&Settings::http_idle_timeout, absl::Seconds(1), absl::Hours(24))},
      {group, "rest", "SWITCH",
       "Serve inference over HTTP: texts through the APIs of OpenAI, Cohere, Jina, "
       "text-embeddings-inference and Ollama (/v1/embeddings, /rerank, …, described by "
       "/openapi.json), and the Open Inference Protocol (/v2/models/NAME/infer and related paths).",
       ChoiceKind(&Settings::rest, switches)},
      {group, "cors-origin", "ORIGIN",
       "Allow pages of this origin, such as https://app.example.com, to call the HTTP port from a "
       "browser; * allows all; may be repeated (in the variable, separate origins by ';').",
       OriginsKind(&Settings::cors_origins)},
      {group, "page", "SWITCH",
       "Serve a page for browsers at / of the HTTP port: load, models, and a form to try them "
       "(requires --rest).",
       ChoiceKind(&Settings::page, switches)},
      {group, "trusted-proxies", "NETWORKS",
       "Proxies whose x-forwarded-for header gives the client address of calls without a token, "
       "for fair shares. Without it, all calls through a proxy count as one client.",
       NetworksKind(&Settings::trusted_proxies)},
      {group, "port-file", "FILE",
       "Once ready, write the ports to this file, as lines `grpc_port=8001` and `http_port=8002`. "
       "Empty: no file.",
       TextKind(&Settings::port_file)},
      {group, "max-connections", "COUNT",
       "Open gRPC connections; the server closes further ones at once. Lowered to a quarter of the "
       "process's file descriptor limit (ulimit -n).",
       IntegerKind(&Settings::max_connections, 1, kMiB)},
      {group, "max-connections-per-address", "COUNT",
       "Open gRPC connections per client address, except for Unix sockets.",
       IntegerKind(&Settings::max_connections_per_address, 1, kMiB)},
      {group, "max-connection-age", "DURATION",
       "The server asks connections older than this (varied by up to a tenth) to close, and closes "
       "them five minutes later.",
       DurationKind(&Settings::max_connection_age, absl::Seconds(1), absl::Hours(24 * 7))},
  };
}

Rows SecurityRows() {
  const std::string group = "Security";
  return {
      {group, "tls-cert", "FILE",
       "PEM certificates, the server's first. Both ports then require TLS 1.2 or later. The server "
       "reads the files again when they change and ignores invalid ones. Empty: no TLS.",
       TextKind(&Settings::tls_cert)},
      {group, "tls-key", "FILE", "Private key of --tls-cert, in PEM without a password.",
       TextKind(&Settings::tls_key)},
      {group, "tls-client-ca", "FILE",
       "PEM certificates of the authorities that must have signed the certificates of clients of "
       "gRPC, /v2 and /metrics, except for health checks. Empty: no client certificates.",
       TextKind(&Settings::tls_client_ca)},
      {group, "token-file", "FILE",
       "Bearer tokens that calls of gRPC and /v2 (scope infer) and of /metrics (scope metrics) "
       "require, except for health checks. Each line holds a token's scopes and its SHA-256, such "
       "as `infer,metrics 9f86d0...`. The server reads the file again when it changes and ignores "
       "an invalid one. Empty: no tokens.",
       TextKind(&Settings::token_file)},
  };
}

Rows ComputeRows() {
  const std::string group = "Compute";
  const Choices<Isa> isas(IsaCaps().begin(), IsaCaps().end());
  const Choices<NumaPolicy> numa = {{"auto", NumaPolicy::kAuto}, {"off", NumaPolicy::kOff}};
  const Choices<RowPolicy> row_policies = {
      {"auto", RowPolicy::kTimed}, {"team", RowPolicy::kTeam}, {"rows", RowPolicy::kRows}};
  const Choices<NonfinitePolicy> policies = {{"propagate", NonfinitePolicy::kPropagate},
                                             {"reject", NonfinitePolicy::kReject}};
  return {
      {group, "instances", "COUNT",
       "Number of batches computed at the same time; 0: chosen from the number of CPUs.",
       IntegerKind(&Settings::instances, 0, 1024)},
      {group, "threads-per-instance", "COUNT",
       "Threads per instance; 0: chosen from the number of CPUs.",
       IntegerKind(&Settings::threads_per_instance, 0, 1024)},
      {group, "numa", "POLICY",
       "On a machine with several NUMA nodes, auto binds each instance to a node with its own copy "
       "of the weights; off leaves placement to the kernel.",
       ChoiceKind(&Settings::numa, numa)},
      {group, "row-plan", "PLAN",
       "How the threads of an instance divide the work; results are identical. team: they share "
       "each product; rows: each thread computes its own rows through all products of a layer; "
       "auto: rows from the token count at which it is no slower, measured for each model at "
       "startup.",
       ChoiceKind(&Settings::row_plan, row_policies)},
      {group, "isa", "NAME", "Newest instruction set that the kernels may use.",
       ChoiceKind(&Settings::isa, isas)},
      {group, "nonfinite", "POLICY",
       "How to handle a request that contains NaN or infinity: propagate computes and counts it, "
       "reject refuses it.",
       ChoiceKind(&Settings::nonfinite, policies)},
  };
}

Rows QueueRows() {
  const std::string group = "Batching and queue";
  return {
      {group, "max-batch-tokens", "TOKENS",
       "Kept tokens in a batch; a longer sequence is computed by itself.",
       IntegerKind(&Settings::max_batch_tokens, 1, kMiB)},
      {group, "max-batch-seconds", "DURATION",
       "Predicted time of a batch; a sequence that takes longer is computed by itself. The limit "
       "is at least eight times the fixed time per batch of the model.",
       DurationKind(&Settings::max_batch_seconds, absl::Milliseconds(1), absl::Minutes(1))},
      {group, "max-queue-delay", "DURATION",
       "How long a batch that is not full may wait for more requests.",
       DurationKind(&Settings::max_queue_delay, absl::ZeroDuration(), absl::Seconds(10))},
      {group, "max-queue-requests", "COUNT", "Requests that may wait; further ones are refused.",
       IntegerKind(&Settings::max_queue_requests, 1, kMiB)},
      {group, "max-queue-tokens", "TOKENS",
       "Kept tokens that may wait ahead of a client's turn; further ones are refused unless "
       "nothing else waits.",
       IntegerKind(&Settings::max_queue_tokens, 1, kGiB)},
      {group, "max-queue-seconds", "DURATION",
       "Predicted time to compute everything that waits ahead of a client's turn; further requests "
       "are refused unless nothing else waits.",
       DurationKind(&Settings::max_queue_seconds, absl::Milliseconds(1), absl::Hours(1))},
      {group, "default-deadline", "DURATION",
       "A call or stream item without a deadline expires this long after its predicted completion.",
       DurationKind(&Settings::default_deadline, absl::Milliseconds(1), absl::Hours(24))},
  };
}

Rows RequestRows() {
  const std::string group = "Request limits";
  return {
      {group, "max-request-tokens", "TOKENS",
       "Largest request: B x S tokens if padded, T if packed.",
       IntegerKind(&Settings::max_request_tokens, 1, kMiB)},
      {group, "max-answer-bytes", "BYTES",
       "Largest response; a request that would exceed it is refused.",
       BytesKind(&Settings::max_answer_bytes, 1024, kMostAnswerBytes)},
      {group, "max-inflight", "COUNT",
       "Requests in progress, from their headers, or the arrival of a stream's item, to the end of "
       "their response. Further items of a stream wait for a slot; a stream's only item needs "
       "none.",
       IntegerKind(&Settings::max_inflight, 1, 65536)},
      {group, "max-streams", "COUNT",
       "Open streams, including reflection; idle streams do not count towards --max-inflight.",
       IntegerKind(&Settings::max_streams, 1, 65536)},
      {group, "peer-reserve", "PERCENT",
       "Share of requests (in flight and waiting), streams and memory that a single client (a "
       "token, or else an address) leaves free for the next one. With several clients, each may "
       "take more only while it holds no more than is free.",
       IntegerKind(&Settings::peer_reserve, 0, 50)},
      {group, "receive-timeout", "DURATION",
       "How long a request may take to arrive, in addition to the time for its bytes at "
       "--min-receive-rate.",
       DurationKind(&Settings::receive_timeout, absl::Milliseconds(1), absl::Hours(1))},
      {group, "min-receive-rate", "BYTES",
       "Lowest rate at which a request may arrive, in bytes per second.",
       BytesKind(&Settings::min_receive_rate, 1, kTiB)},
      {group, "send-timeout", "DURATION",
       "The server ends a call that has not sent its response within this time; for EncodeStream, "
       "each response.",
       DurationKind(&Settings::send_timeout, absl::Milliseconds(1), absl::Hours(1))},
      {group, "stream-window", "COUNT",
       "Items of one EncodeStream that are processed at the same time.",
       IntegerKind(&Settings::stream_window, 1, 1024)},
      {group, "stream-idle-timeout", "DURATION",
       "The server ends an EncodeStream without items in progress if no further item arrives in "
       "full within this time.",
       DurationKind(&Settings::stream_idle_timeout, absl::Milliseconds(1), absl::Hours(24))},
  };
}

Rows RegisteredRows() {
  const std::string group = "Registered memories";
  return {
      {group, "max-registered-bytes", "BYTES",
       "Memory for keys and values registered by PutMemory and for the states of sequences that "
       "arrive in chunks over EncodeStream, for all models; requests beyond it are refused.",
       BytesKind(&Settings::max_registered_bytes, 0, kTiB)},
      {group, "max-registered-age", "DURATION",
       "Lifetime of a registered memory, unless its client asks for less.",
       DurationKind(&Settings::max_registered_age, absl::Milliseconds(1), absl::Hours(24 * 30))},
  };
}

Rows CacheRows() {
  const std::string group = "Cache";
  return {
      {group, "cache-bytes", "BYTES",
       "Memory, reserved at startup, for results that the server returns again, bit for bit and "
       "without queueing, when the same client (a token, or else an address) sends the same text, "
       "ids or features to the same version of a model: pooled vectors, class scores and sparse "
       "vectors of whole sequences, and the token ids of texts, but not token vectors or "
       "attention. Least recently used results are evicted. 0: no cache.",
       BytesKind(&Settings::cache_bytes, 0, kTiB)},
  };
}

Rows LifeRows() {
  const std::string group = "Shutdown and logs";
  const Choices<LogFormat> formats = {{"text", LogFormat::kText}, {"json", LogFormat::kJson}};
  const Choices<std::string> levels = {{"trace", "trace"},
                                       {"debug", "debug"},
                                       {"info", "info"},
                                       {"warn", "warn"},
                                       {"error", "error"}};
  return {
      {group, "lame-duck", "DURATION",
       "After SIGTERM or SIGINT, how long the server still accepts requests while health checks "
       "report that it is not serving.",
       DurationKind(&Settings::lame_duck, absl::ZeroDuration(), absl::Hours(1))},
      {group, "drain-timeout", "DURATION",
       "After --lame-duck, how long accepted requests may take before they fail. Also how long a "
       "replaced version of a model serves the memories and sequences that it created.",
       DurationKind(&Settings::drain_timeout, absl::ZeroDuration(), absl::Hours(1))},
      {group, "log-format", "FORMAT", "Text or one JSON object per line, on standard error.",
       ChoiceKind(&Settings::log_format, formats)},
      {group, "log-level", "LEVEL", "Least severe messages to log.",
       ChoiceKind(&Settings::log_level, levels)},
      {group, "slow-request", "DURATION",
       "Log a warning for each request that takes at least this long from its headers to its end; "
       "0: never.",
       DurationKind(&Settings::slow_request, absl::ZeroDuration(), absl::Hours(1))},
  };
}

Rows MakeTable() {
  Rows table;
  for (auto* rows : {ModelRows, NetworkRows, SecurityRows, ComputeRows, QueueRows, RequestRows,
                     RegisteredRows, CacheRows, LifeRows}) {
    for (SettingRow& row : rows()) table.push_back(std::move(row));
  }
  return table;
}

}  // namespace

const std::vector<SettingRow>& SettingsTable() {
  static const auto& table = *new std::vector<SettingRow>(MakeTable());
  return table;
}

std::string VariableName(const std::string& setting) {
  return absl::StrCat("ATTENDANT_",
                      absl::StrReplaceAll(absl::AsciiStrToUpper(setting), {{"-", "_"}}));
}

}  // namespace attendant::server
