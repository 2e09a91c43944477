#include "server/app.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "engine/base/cpu_budget.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/isa.h"
#include "proto/byte_text.h"
#include "server/admission/admission.h"
#include "server/base/clock.h"
#include "server/base/fault.h"
#include "server/base/listening_socket.h"
#include "server/base/worker_threads.h"
#include "server/batching/instance_pool.h"
#include "server/execution/batch_executor.h"
#include "server/execution/prepare_model.h"
#include "server/host/freed_memory.h"
#include "server/host/memory_limit.h"
#include "server/host/node_binding.h"
#include "server/host/port_file.h"
#include "server/host/signals.h"
#include "server/http/http_server.h"
#include "server/limits.h"
#include "server/metrics/process_figures.h"
#include "server/metrics/server_metrics.h"
#include "server/models/gauges_of_model.h"
#include "server/models/model_loading.h"
#include "server/models/model_lookup.h"
#include "server/page/page_routes.h"
#include "server/pull_models.h"
#include "server/repository/model_repository.h"
#include "server/repository/version_loader.h"
#include "server/rpc/call_dispatcher.h"
#include "server/rpc/grpc_server.h"
#include "server/security/certificates.h"
#include "server/security/reloaded.h"
#include "server/security/tokens.h"
#include "server/settings/read_settings.h"
#include "server/text_calls/text_models.h"
#include "server/text_calls/text_server.h"
#include "server/transport/connection_listener.h"
#include "server/work_gauges.h"

namespace attendant::server {
namespace {

constexpr const char* kServiceNames[] = {"attendant.v1.EncoderService",
                                         "inference.GRPCInferenceService"};

}  // namespace

class App::Impl {
 public:
  explicit Impl(const Settings& settings)
      : settings_(settings),
        cpu_budget_(MeasureCpuBudget()),
        numa_nodes_(NumaNodesOf(settings)),
        plan_(MakeThreadPlan(settings, cpu_budget_, numa_nodes_)),
        metrics_(ATTENDANT_VERSION, EffectiveIsa(), OneDnnVersion()),
        memory_limit_(MemoryLimitOf(settings)),
        admission_(AdmissionLimitsOf(settings, memory_limit_), ResidentBytes),
        queue_(clock_, QueueLimitsOf(settings), BatchLimitsOf(settings, plan_)),
        cross_kv_(clock_, settings.max_registered_bytes, settings.max_registered_age,
                  &admission_.memory()) {}

  ~Impl() {
    if (grpc_ != nullptr && !admission_.closed()) Drain();
    http_.reset();  // its calls are the service's
    workers_.reset();
    queue_.Close();  // so that the threads of instances_ end
    stops_housekeeping_.Notify();
    if (housekeeping_.joinable()) housekeeping_.join();
  }

  absl::Status Start() {
    // First, because /metrics reports its connections.
    const absl::Status bound = BindListener();
    RETURN_IF_ERROR(LoadCertificates());
    RETURN_IF_ERROR(LoadTokens());
    RETURN_IF_ERROR(StartHttp());
    if (!bound.ok()) return bound;
    RETURN_IF_ERROR(CheckPortFile(settings_.port_file));
    std::vector<std::string> names;
    for (const ModelSetting& model : settings_.models) names.push_back(model.name);
    RETURN_IF_ERROR(CheckAliases(settings_.aliases, names, !settings_.model_repository.empty()));
    ASSIGN_OR_RETURN(const Settings pulled, WithPulledModels(settings_));
    ASSIGN_OR_RETURN(std::vector<OpenedModel> opened, OpenModels(pulled));
    RETURN_IF_ERROR(CheckLimits(opened));

    LogPlan();
    spdlog::info("memory for requests: {} of {} ({})", proto::InMebibytes(request_budget_),
                 proto::InMebibytes(memory_limit_.bytes), memory_limit_.reason);
    std::optional<FreshPages> fresh_pages;  // for weights and activations
    if (!plan_.nodes.empty()) fresh_pages.emplace();
    ASSIGN_OR_RETURN(const ServedModels models, LoadModels(std::move(opened), plan_, clock_));
    models_.SetAliases(settings_.aliases);
    models_.Replace(PrepareModels(models, RunTokens(settings_), plan_, clock_));
    RETURN_IF_ERROR(Serve());
    method_context_ = &dispatcher_->method_context();
    ready_ = true;
    RETURN_IF_ERROR(WritePortFile(settings_.port_file, listener_->port(), http_->port()));
    const std::string url = PageUrl(HttpAddress(), http_->port(), certificates_ != nullptr);
    spdlog::info("ready: gRPC on {}, HTTP on {} port {}, page {}", listener_->name(), HttpAddress(),
                 http_->port(), settings_.page ? url : "off");
    const std::string text = ExampleOfTexts(models_, url, !settings_.token_file.empty());
    if (settings_.rest && !text.empty()) spdlog::info("try: {}", text);
    return absl::OkStatus();
  }

  void Drain() {
    ready_ = false;
    http_->Drain();
    dispatcher_->health().Shutdown();
    if (repository_) repository_->Stop();
    if (loader_) loader_->Stop();
    BeLameDuck();
    listener_->Close();
    admission_.Close();
    dispatcher_->Drain();
    spdlog::info("draining: {} requests in flight", admission_.slots().counts().all());
    const absl::Time deadline = clock_.Now() + settings_.drain_timeout;
    const int64_t late = admission_.AwaitIdle(settings_.drain_timeout);
    queue_.Close();
    if (late > 0) {
      spdlog::warn("drain timeout: failing {} unfinished requests", late);
      queue_.FailAll(absl::UnavailableError("the server is stopping"));
    }
    EndGrpcServer(*grpc_, *listener_, deadline);
    instances_.reset();
    spdlog::info("stopped after answering {} requests", metrics_.answered());
  }

 private:
  // Gives clients time to notice that the server is not ready. A second signal ends the process
  // meanwhile.
  void BeLameDuck() const {
    if (settings_.lame_duck == absl::ZeroDuration()) return;
    spdlog::info("lame duck: not ready, but accepting requests for another {}",
                 absl::FormatDuration(settings_.lame_duck));
    absl::SleepFor(settings_.lame_duck);
  }

  std::string HttpAddress() const {
    if (!settings_.http_address.empty()) return settings_.http_address;
    return IsUnixAddress(settings_.address) ? "127.0.0.1" : settings_.address;
  }

  absl::Status BindListener() {
    ConnectionLimits limits = {settings_.max_connections, settings_.max_connections_per_address};
    most_connections_ = MostConnections(RaiseDescriptorLimit());
    limits.total = std::min(limits.total, most_connections_);
    limits.encrypted = !settings_.tls_cert.empty();
    ASSIGN_OR_RETURN(listener_,
                     ConnectionListener::Bind(settings_.address, settings_.port, limits));
    return absl::OkStatus();
  }

  absl::Status LoadCertificates() {
    std::vector<std::string> paths = {settings_.tls_cert, settings_.tls_key};
    if (!settings_.tls_client_ca.empty()) paths.push_back(settings_.tls_client_ca);
    if (paths == std::vector<std::string>(2)) return absl::OkStatus();
    if (paths[0].empty() || paths[1].empty()) {
      return absl::InvalidArgumentError("--tls-cert, --tls-key: TLS requires both");
    }
    ASSIGN_OR_RETURN(certificates_,
                     Reloaded<Certificates>::Load(std::move(paths), CheckCertificates));
    return absl::OkStatus();
  }

  absl::Status LoadTokens() {
    if (settings_.token_file.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(auto tokens, Reloaded<Tokens>::Load({settings_.token_file},
                                                         [](const std::vector<std::string>& texts) {
                                                           return Tokens::Parse(texts[0]);
                                                         }));
    tokens_ = std::move(tokens);
    return absl::OkStatus();
  }

  ServerSecrets Secrets() { return {certificates_.get(), tokens_.get(), &metrics_}; }

  absl::Status StartHttp() {
    HttpHandlers handlers;
    handlers.ready = [this] { return ready_.load(); };
    handlers.metrics = [this] { return metrics_.Scrape(ReadGauges()); };
    handlers.cors_origins = settings_.cors_origins;
    if (settings_.page) handlers.routes = PageRoutes({settings_.rest, tokens_ != nullptr});
    if (settings_.rest) {
      handlers.call = [this](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
        return StartHttpCall(request, reply, Secrets(), ATTENDANT_VERSION, method_context_);
      };
    }
    ASSIGN_OR_RETURN(http_,
                     HttpServer::Start(HttpAddress(), settings_.http_port, std::move(handlers),
                                       HttpLimitsOf(settings_, HttpLimitsOfProcess()), Secrets()));
    return absl::OkStatus();
  }

  Gauges ReadGauges() {
    Gauges gauges;
    gauges.Add("attendant_ready", "1 if the server accepts requests.", ready_ ? 1 : 0);
    AddLoad(admission_, queue_, gauges);
    AddMemory(admission_, cross_kv_, gauges);
    AddCache(cache_ == nullptr ? CacheCounts() : cache_->counts(), gauges);
    gauges.Add("attendant_connections", "Open gRPC connections.",
               listener_ == nullptr ? 0 : listener_->connections().count());
    if (certificates_ != nullptr) {
      gauges.Add(
          "attendant_certificate_expiry_timestamp_seconds",
          "Earliest expiry in the certificate chain in use, in seconds since the unix epoch.",
          absl::ToUnixSeconds(certificates_->current()->expiry));
    }
    const std::shared_ptr<const ServedModels> models = models_.Snapshot();
    for (const auto& [name, model] : *models) AddGauges(*model, clock_.Now(), gauges);
    return gauges;
  }

  absl::Status CheckLimits(const std::vector<OpenedModel>& opened) {
    RETURN_IF_ERROR(CheckMemory(opened, settings_, plan_, memory_limit_));
    RETURN_IF_ERROR(CheckRepository(settings_.model_repository, settings_.models));
    memory_need_ = *PredictMemory(opened, settings_, plan_);
    request_budget_ = RequestBudget(memory_need_, memory_limit_);
    SetRequestBudget(request_budget_);
    return absl::OkStatus();
  }

  bool SetRequestBudget(int64_t bytes) {
    return admission_.memory().SetLimits(WithReserve(bytes, settings_));
  }

  void LogPlan() const {
    spdlog::info("attendant-server {}, oneDNN {}, instruction set {}", ATTENDANT_VERSION,
                 OneDnnVersion(), EffectiveIsa());
    for (const std::string& line : DescribeSettings(settings_)) spdlog::info("setting {}", line);
    spdlog::info("thread plan: instances {}, threads per instance {}; {} CPUs available ({})",
                 plan_.instances, plan_.threads_per_instance, cpu_budget_.threads,
                 cpu_budget_.reason);
    if (settings_.max_connections > most_connections_) {
      spdlog::warn("lowered --max-connections to {} (limit of file descriptors, ulimit -n)",
                   most_connections_);
    }
    if (tokens_ != nullptr && certificates_ == nullptr && !IsUnixAddress(settings_.address)) {
      spdlog::warn("--token-file without --tls-cert: tokens are sent unencrypted");
    }
    if (numa_nodes_.size() > 1) spdlog::info("{}", DescribePlaces(plan_, numa_nodes_));
    if (Oversubscribes(plan_, cpu_budget_)) {
      spdlog::warn("more compute threads than CPUs: threads will wait for each other");
    }
  }

  absl::Status Serve() {
    const ServiceLimits limits = {settings_, memory_need_.largest_request()};
    dispatcher_ = std::make_unique<CallDispatcher>(
        ServiceContext{models_, admission_, queue_, metrics_, cross_kv_, clock_, *workers_, limits,
                       plan_, Secrets(), cache_.get()});
    const std::shared_ptr<const ServedModels> models = models_.Snapshot();
    for (const auto& [name, model] : *models) dispatcher_->health().Set(name, true);
    RETURN_IF_ERROR(StartRepository());
    KeepStopSignal();  // from here on there may be requests to drain
    instances_ = std::make_unique<InstancePool>(queue_, plan_.instances, [this](int instance) {
      return MakeRunner(dispatcher_->context(), instance);
    });

    ASSIGN_OR_RETURN(grpc_,
                     StartGrpcServer(*dispatcher_, *listener_, TransportQuota(request_budget_)));
    housekeeping_ = std::thread([this] { RunHousekeeping(); });
    for (const char* name : kServiceNames) dispatcher_->health().Set(name, true);
    return absl::OkStatus();
  }

  absl::Status StartRepository() {
    if (settings_.model_repository.empty()) return absl::OkStatus();
    loader_.emplace(LoaderOptions{settings_, plan_, memory_limit_, memory_need_, clock_,
                                  [this](int64_t bytes) { return SetRequestBudget(bytes); }});
    RepositoryHooks hooks;
    hooks.load = [this](const auto& name, const auto& version) {
      return loader_->Load(name, version);
    };
    hooks.on_load = [this](const auto& name, bool ok) { metrics_.RecordModelLoad(name, ok); };
    hooks.on_change = [this](const auto& name, bool served) {
      return served ? dispatcher_->health().Set(name, true) : dispatcher_->health().Remove(name);
    };
    hooks.on_retired = [this] { cross_kv_.EvictRetired(); };
    hooks.upkeep = [this] { loader_->CollectFreed(); };
    repository_.emplace(settings_, std::move(hooks), models_, clock_);
    RETURN_IF_ERROR(repository_->LoadAll());
    RETURN_IF_ERROR(CheckAliases(settings_.aliases, NamesOf(*models_.Snapshot()), true));
    repository_->Start();
    return absl::OkStatus();
  }

  // Not a Timer: its callbacks must not block, and it allocates for each of them.
  void RunHousekeeping() {
    // An exception, such as std::bad_alloc, ends only this round.
    while (!stops_housekeeping_.WaitForNotificationWithTimeout(absl::Seconds(1))) {
      Guarded([this] { DoHousekeeping(); }).IgnoreError();
    }
  }

  void DoHousekeeping() {
    if (ResidentBytes() > admission_.most_resident_bytes()) {
      freed_memory_.GiveBack();  // all calls are refused meanwhile
    } else {
      const BudgetCounts calls = admission_.slots().counts();
      freed_memory_.GiveBackIfGrown({calls.all(), calls.taken});
    }
    if (certificates_ != nullptr) {
      ReportReload("certificates", certificates_->Reload(), metrics_);
    }
    if (tokens_ != nullptr) ReportReload("tokens", tokens_->Reload(), metrics_);
  }

  const Settings settings_;
  Clock& clock_ = RealClock();
  const CpuBudget cpu_budget_;
  const std::vector<NumaNode> numa_nodes_;
  const ThreadPlan plan_;
  std::atomic<bool> ready_ = false;
  int64_t most_connections_ = 0;
  int64_t request_budget_ = 0;  // bytes
  MemoryNeed memory_need_;      // without the versions of the repository
  // Every member uses only members above it, so that the order of destruction is right.
  ServerMetrics metrics_;
  const MemoryLimit memory_limit_;
  Admission admission_;
  BatchQueue queue_;
  ModelTable models_;
  CrossKvStore cross_kv_;
  const std::unique_ptr<ResultCache> cache_ = ResultCache::Make(settings_.cache_bytes);
  // Enough threads that a long body or text does not delay short ones.
  std::unique_ptr<WorkerThreads> workers_ =
      std::make_unique<WorkerThreads>(std::max(2, cpu_budget_.threads / 4));
  std::unique_ptr<Reloaded<Certificates>> certificates_;  // null: no TLS
  std::unique_ptr<Reloaded<Tokens>> tokens_;              // null: calls need none
  FreedMemory freed_memory_{ResidentBytes};
  std::unique_ptr<ConnectionListener> listener_;
  std::atomic<const MethodContext*> method_context_ = nullptr;  // null until models are served
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<CallDispatcher> dispatcher_;
  std::optional<VersionLoader> loader_;
  std::optional<ModelRepository> repository_;
  std::unique_ptr<InstancePool> instances_;
  std::unique_ptr<grpc::Server> grpc_;
  absl::Notification stops_housekeeping_;
  std::thread housekeeping_;
};

App::App(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
App::~App() = default;

absl::StatusOr<std::unique_ptr<App>> App::Start(const Settings& settings) {
  RETURN_IF_ERROR(CapIsa(settings.isa));
  auto impl = std::make_unique<Impl>(settings);
  RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<App>(new App(std::move(impl)));
}

void App::Drain() { impl_->Drain(); }

}  // namespace attendant::server
