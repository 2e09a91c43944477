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
       "Serve SOURCE under NAME, such as BAAI/bge-m3; repeatable, and ';' separates several in the "
       "variable. SOURCE is a checkpoint folder, hf:ORG/REPO[@REVISION] for a repository of the "
       "Hugging Face Hub (without NAME= it is served as ORG/REPO), worked-example, or "
       "synthetic:NAME such as synthetic:bert-base. Keys: dtype=f32, bf16x3, bf16 or int8 is what "
       "its linear layers compute in (bf16x3 needs AMX, bf16 AVX512_BF16 or AMX), emulate=true "
       "does the same roundings in float32 on any CPU, gemm=onednn, tiles or vector uses oneDNN's "
       "matrix products or the server's own on the tiles of AMX or in SIMD (by default, auto, the "
       "fastest), weights=f32, bf16 or f16 is what f32 keeps weights in (by default, auto, what "
       "their file does), adapter=FOLDER merges a LoRA adapter of PEFT, task=NAME one that the "
       "checkpoint itself has for a task (jina-embeddings-v3), "
       "overlay=FILE takes SOURCE for the name of another model and shares its weights, all but "
       "the norms in FILE (safetensors), pooling=mean, first_token, last_token, max or pooler sets "
       "how vectors of texts and MODEL_POOLING are made, yes_no has a causal language model rank "
       "texts by these words, causal=false lets the tokens of a causal "
       "model see those after them, prune=FILE leaves out the attention heads that a JSON file "
       "names, {\"0\": [2, 5]} (beside overlay, heads of its base), tower=text or vision serves "
       "that tower of CLIP or SigLIP, route=query or document that route of a Router, "
       "weights-sha256=HEX refuses others, allow-nonfinite-weights=true accepts NaN and infinity. "
       "Without any, and without --model-repository: worked-example under that name.",
       ModelsKind()},
      {group, "alias", "NAME=MODEL",
       "Offer MODEL under the name NAME too, such as text-embedding-3-small=minilm for clients "
       "that name a model of OpenAI's; repeatable, and ';' separates several in the variable.",
       AliasesKind()},
      {group, "model-repository", "DIR",
       "Serve the newest version of each model in DIR, where NAME/VERSION/ or ORG/NAME/VERSION/ is "
       "a checkpoint folder and VERSION a positive integer. Versions may be added and removed "
       "while the server runs: make a folder elsewhere, then rename it into place. A file "
       "attendant.options in a version has keys of --model, such as dtype=int8. Empty: none.",
       TextKind(&Settings::model_repository)},
      {group, "repository-poll", "DURATION", "How often --model-repository is looked at.",
       DurationKind(&Settings::repository_poll, absl::Milliseconds(10), absl::Hours(24))},
      {group, "repository-width", "COLUMNS",
       "The widest input row that a model of --model-repository may have: the size of the largest "
       "message is fixed at the start.",
       IntegerKind(&Settings::repository_width, 1, kMiB)},
      {group, "model-cache", "DIR",
       "Cache for models of the Hub, in the layout of the Hub's own library, which can share it. "
       "Empty: the cache of that library (HF_HUB_CACHE, HF_HOME/hub, or ~/.cache/huggingface/hub). "
       "Private and gated repositories need HF_TOKEN or a login by `hf auth login`; HF_ENDPOINT "
       "names another Hub.",
       TextKind(&Settings::model_cache)},
      {group, "offline", "[on|off]",
       "Use the models in --model-cache without connecting to the Hub, as HF_HUB_OFFLINE=1 does.",
       SwitchKind(&Settings::offline)},
      {group, "max-model-bytes", "BYTES", "Largest size of a model's weight files together.",
       BytesKind(&Settings::max_model_bytes, 1, 16 * kTiB)},
      {group, "memory-limit-bytes", "BYTES",
       "Memory of the whole server. What weights, activations and gRPC leave of it is for "
       "requests, "
       "from the receipt of each until its answer has left, and for registered memories. 0: what "
       "the cgroup has; without a cgroup's limit what the machine has, of which requests get at "
       "most 2 GiB.",
       BytesKind(&Settings::memory_limit_bytes, 0, 16 * kTiB)},
  };
}

Rows NetworkRows() {
  const std::string group = "Network";
  const Choices<bool> switches = {{"on", true}, {"off", false}};
  return {
      {group, "address", "ADDRESS",
       "Address to listen on, for gRPC and, unless --http-address names another one, HTTP; :: "
       "takes "
       "IPv4 too. unix:PATH is a Unix socket for gRPC, which the owner and the group of the "
       "process may use; HTTP then listens on 127.0.0.1.",
       AddressKind(&Settings::address, false)},
      {group, "port", "PORT", "gRPC port; 0 picks a free one.",
       IntegerKind(&Settings::port, 0, 65535)},
      {group, "http-address", "ADDRESS", "Address to listen on for HTTP; empty: that of --address.",
       AddressKind(&Settings::http_address, true)},
      {group, "http-port", "PORT",
       "Port of /metrics, /healthz, /readyz, /v2 and the page at /; 0 picks a free one.",
       IntegerKind(&Settings::http_port, 0, 65535)},
      {group, "http-idle-timeout", "DURATION",
       "How long an HTTP connection stays open between two requests.",
       DurationKind(&Settings::http_idle_timeout, absl::Seconds(1), absl::Hours(24))},
      {group, "rest", "SWITCH",
       "Inference over HTTP: texts as OpenAI's, Cohere's, Jina's and text-embeddings-inference's "
       "APIs have them (/v1/embeddings, /rerank, …; /openapi.json describes them), and the Open "
       "Inference Protocol, /v2/models/NAME/infer and the paths around it.",
       ChoiceKind(&Settings::rest, switches)},
      {group, "cors-origin", "ORIGIN",
       "Let pages of this origin, such as https://app.example.com, call the HTTP port from a "
       "browser; * for all; repeatable, and ';' separates several in the variable.",
       OriginsKind(&Settings::cors_origins)},
      {group, "page", "SWITCH",
       "A page for browsers at / of the HTTP port: load, models, and a form to try them (by "
       "--rest).",
       ChoiceKind(&Settings::page, switches)},
      {group, "trusted-proxies", "NETWORKS",
       "Proxies whose header x-forwarded-for says which address a call without a token comes from, "
       "for fair shares; without it all of these are one caller's.",
       NetworksKind(&Settings::trusted_proxies)},
      {group, "port-file", "FILE",
       "Once ready, write the ports there: lines `grpc_port=8001` and `http_port=8002`. Empty: "
       "nowhere.",
       TextKind(&Settings::port_file)},
      {group, "max-connections", "COUNT",
       "gRPC connections that may be open; more are closed at once. Lowered to a quarter of the "
       "file descriptors that the process may open (ulimit -n).",
       IntegerKind(&Settings::max_connections, 1, kMiB)},
      {group, "max-connections-per-address", "COUNT",
       "The same for one address; does not count for Unix sockets.",
       IntegerKind(&Settings::max_connections_per_address, 1, kMiB)},
      {group, "max-connection-age", "DURATION",
       "A connection that is older, by up to a tenth more or less, is asked to end, and closed "
       "five minutes later.",
       DurationKind(&Settings::max_connection_age, absl::Seconds(1), absl::Hours(24 * 7))},
  };
}

Rows SecurityRows() {
  const std::string group = "Security";
  return {
      {group, "tls-cert", "FILE",
       "Certificates in PEM, that of the server first: connections to both ports have to be TLS "
       "1.2 or newer. Files are read again when they change; bad ones change nothing. Empty: no "
       "TLS.",
       TextKind(&Settings::tls_cert)},
      {group, "tls-key", "FILE", "Private key of --tls-cert, in PEM without a password.",
       TextKind(&Settings::tls_key)},
      {group, "tls-client-ca", "FILE",
       "Certificates in PEM: callers of gRPC, /v2 and /metrics have to show one that these have "
       "signed, except for health checks. Empty: none.",
       TextKind(&Settings::tls_client_ca)},
      {group, "token-file", "FILE",
       "Bearer tokens that calls of gRPC and /v2 (scope infer) and of /metrics (scope metrics) "
       "need, health checks excepted: a line for each, with its scopes and its SHA-256, such as "
       "`infer,metrics 9f86d0...`. Read again when it changes; a bad one changes nothing. Empty: "
       "none.",
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
       "Batches that are computed at the same time; 0: chosen from the CPUs.",
       IntegerKind(&Settings::instances, 0, 1024)},
      {group, "threads-per-instance", "COUNT", "Threads of each instance; 0: chosen from the CPUs.",
       IntegerKind(&Settings::threads_per_instance, 0, 1024)},
      {group, "numa", "POLICY",
       "On a machine with several NUMA nodes: auto binds each instance to one of them, which gets "
       "its own copy of the weights; off leaves threads and memory to the kernel.",
       ChoiceKind(&Settings::numa, numa)},
      {group, "row-plan", "PLAN",
       "How the threads of an instance divide the work; no bit of an answer depends on it. team: "
       "they share each product; rows: each has rows of its own, through all products of a layer; "
       "auto: rows from the number of tokens on from which that is not slower, measured at the "
       "start for each model.",
       ChoiceKind(&Settings::row_plan, row_policies)},
      {group, "isa", "NAME", "Newest instruction set that the kernels may use.",
       ChoiceKind(&Settings::isa, isas)},
      {group, "nonfinite", "POLICY",
       "What happens to a request with NaN or infinity in it: computed and counted, or refused.",
       ChoiceKind(&Settings::nonfinite, policies)},
  };
}

Rows QueueRows() {
  const std::string group = "Batching and queue";
  return {
      {group, "max-batch-tokens", "TOKENS",
       "Kept tokens that are computed together; a sequence with more is computed alone.",
       IntegerKind(&Settings::max_batch_tokens, 1, kMiB)},
      {group, "max-batch-seconds", "DURATION",
       "Predicted time of a batch; a sequence that takes longer is computed alone. Models that "
       "take much time for a batch whatever is in it get longer ones, eight times that.",
       DurationKind(&Settings::max_batch_seconds, absl::Milliseconds(1), absl::Minutes(1))},
      {group, "max-queue-delay", "DURATION",
       "How long a batch that is not full may wait for company.",
       DurationKind(&Settings::max_queue_delay, absl::ZeroDuration(), absl::Seconds(10))},
      {group, "max-queue-requests", "COUNT", "Requests that may wait; more are refused.",
       IntegerKind(&Settings::max_queue_requests, 1, kMiB)},
      {group, "max-queue-tokens", "TOKENS",
       "Kept tokens that may wait before a caller's turn; more are refused, unless nothing else "
       "waits.",
       IntegerKind(&Settings::max_queue_tokens, 1, kGiB)},
      {group, "max-queue-seconds", "DURATION",
       "Predicted time until everything that waits before a caller's turn is computed; more is "
       "refused, unless nothing else waits.",
       DurationKind(&Settings::max_queue_seconds, absl::Milliseconds(1), absl::Hours(1))},
      {group, "default-deadline", "DURATION",
       "A call or stream item without a deadline ends this long after the time at which it is "
       "predicted to be computed.",
       DurationKind(&Settings::default_deadline, absl::Milliseconds(1), absl::Hours(24))},
  };
}

Rows RequestRows() {
  const std::string group = "Request limits";
  return {
      {group, "max-request-tokens", "TOKENS", "B x S of a padded request, T of a packed one.",
       IntegerKind(&Settings::max_request_tokens, 1, kMiB)},
      {group, "max-answer-bytes", "BYTES",
       "Largest answer; a request that would get a larger one is refused.",
       BytesKind(&Settings::max_answer_bytes, 1024, kMostAnswerBytes)},
      {group, "max-inflight", "COUNT",
       "Requests between their headers, or the arrival of a stream's item, and the end of their "
       "answer. A stream's item waits for a place; one alone in its stream needs none.",
       IntegerKind(&Settings::max_inflight, 1, 65536)},
      {group, "max-streams", "COUNT",
       "Streams that may be open, reflection's too; idle ones hold no place among the requests.",
       IntegerKind(&Settings::max_streams, 1, 65536)},
      {group, "peer-reserve", "PERCENT",
       "Part of requests (in flight and waiting), streams and memory that one caller (a token, or "
       "else an address) never takes alone, so that the next one finds some; with several, each "
       "may take more only while it has no more than is free.",
       IntegerKind(&Settings::peer_reserve, 0, 50)},
      {group, "receive-timeout", "DURATION",
       "How long a request may take to arrive, beyond the time for its bytes at the least rate.",
       DurationKind(&Settings::receive_timeout, absl::Milliseconds(1), absl::Hours(1))},
      {group, "min-receive-rate", "BYTES", "The least bytes a second at which a request arrives.",
       BytesKind(&Settings::min_receive_rate, 1, kTiB)},
      {group, "send-timeout", "DURATION",
       "A call whose answer has not left by then is ended. An EncodeStream: each of its answers.",
       DurationKind(&Settings::send_timeout, absl::Milliseconds(1), absl::Hours(1))},
      {group, "stream-window", "COUNT",
       "Most items of one EncodeStream that are worked on at the same time.",
       IntegerKind(&Settings::stream_window, 1, 1024)},
      {group, "stream-idle-timeout", "DURATION",
       "An EncodeStream whose items are all answered is ended if no further one is complete by "
       "then.",
       DurationKind(&Settings::stream_idle_timeout, absl::Milliseconds(1), absl::Hours(24))},
  };
}

Rows RegisteredRows() {
  const std::string group = "Registered memories";
  return {
      {group, "max-registered-bytes", "BYTES",
       "Keys and values that PutMemory may keep, and what sequences that come in parts over "
       "EncodeStream leave behind, of all models; more are refused.",
       BytesKind(&Settings::max_registered_bytes, 0, kTiB)},
      {group, "max-registered-age", "DURATION",
       "When a registered memory expires, unless its client asks for less.",
       DurationKind(&Settings::max_registered_age, absl::Milliseconds(1), absl::Hours(24 * 30))},
  };
}

Rows CacheRows() {
  const std::string group = "Cache";
  return {
      {group, "cache-bytes", "BYTES",
       "Memory, set aside at start, for results that are returned again, bit for bit and without "
       "waiting in the queue, when the same client (a token, or else an address) sends the same "
       "text, ids or features to the same version of a model: pooled vectors, class scores and "
       "sparse vectors of whole sequences, and the token ids of texts; neither vectors of tokens "
       "nor attention. Those not used for longest make room. 0: everything is computed.",
       BytesKind(&Settings::cache_bytes, 0, kTiB)},
  };
}

Rows LifeRows() {
  const std::string group = "Life and logs";
  const Choices<LogFormat> formats = {{"text", LogFormat::kText}, {"json", LogFormat::kJson}};
  const Choices<std::string> levels = {{"trace", "trace"},
                                       {"debug", "debug"},
                                       {"info", "info"},
                                       {"warn", "warn"},
                                       {"error", "error"}};
  return {
      {group, "lame-duck", "DURATION",
       "After SIGTERM or SIGINT: how long new requests are still accepted while health checks say "
       "that the server does not serve.",
       DurationKind(&Settings::lame_duck, absl::ZeroDuration(), absl::Hours(1))},
      {group, "drain-timeout", "DURATION",
       "After that: how long accepted requests may take before they are failed. Also how long a "
       "version of a model that is replaced serves the memories and sequences that it has made.",
       DurationKind(&Settings::drain_timeout, absl::ZeroDuration(), absl::Hours(1))},
      {group, "log-format", "FORMAT", "Text, or one JSON object a line; on standard error.",
       ChoiceKind(&Settings::log_format, formats)},
      {group, "log-level", "LEVEL", "Least severe messages to log.",
       ChoiceKind(&Settings::log_level, levels)},
      {group, "slow-request", "DURATION",
       "A request that takes as long from its headers to its end is logged as a warning; 0: none.",
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
