#include "server/repository/model_repository.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/base/fault.h"

namespace attendant::server {
namespace {

constexpr size_t kMostReasonBytes = 1000;

// Returns the reason for clients, without paths.
std::string ReasonFor(const std::string& name, const VersionFolder& version, std::string reason) {
  reason = absl::StrReplaceAll(
      reason, {{version.path + "/", ""}, {version.path, absl::StrCat(name, "/", version.version)}});
  size_t end = std::min(reason.size(), kMostReasonBytes);
  // Not within a character of UTF-8.
  while (end > 0 && end < reason.size() && (reason[end] & 0xC0) == 0x80) --end;
  return reason.substr(0, end);
}

}  // namespace

absl::Status CheckRepository(const std::string& folder, const std::vector<ModelSetting>& models) {
  if (folder.empty()) return absl::OkStatus();
  const absl::StatusOr<RepositoryScan> scan = ScanRepository(folder);
  if (!scan.ok()) {
    return absl::Status(scan.status().code(),
                        absl::StrCat("--model-repository: ", scan.status().message()));
  }
  for (const ModelSetting& model : models) {
    if (scan->models.count(model.name) == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("--model ", model.name,
                                                   " and --model-repository ", folder, "/",
                                                   model.name, ": expected two different names"));
  }
  return absl::OkStatus();
}

ModelRepository::ModelRepository(const Settings& settings, RepositoryHooks hooks, ModelTable& table,
                                 Clock& clock)
    : settings_(settings), hooks_(std::move(hooks)), table_(table), clock_(clock) {
  const std::shared_ptr<const ServedModels> others = table_.Snapshot();
  for (const auto& [name, model] : *others) other_names_[name] = "--model";
}

ModelRepository::~ModelRepository() {
  Stop();
  if (thread_.joinable()) thread_.join();
}

void ModelRepository::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
  changed_.SignalAll();
}

bool ModelRepository::IsStopped() {
  absl::MutexLock lock(&mutex_);
  return stopped_;
}

absl::Status ModelRepository::LoadAll() {
  const absl::StatusOr<RepositoryScan> scan = ScanRepository(settings_.model_repository);
  if (!scan.ok()) return scan.status();
  UpdateAll(*scan, /*first=*/true);
  for (const auto& [alias, model] : table_.aliases()) other_names_[alias] = "--alias";
  return absl::OkStatus();
}

void ModelRepository::Start() {
  thread_ = std::thread([this] { Run(); });
}

void ModelRepository::Run() {
  absl::Time next = clock_.Now() + settings_.repository_poll;
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      const absl::Time wake = replaced_.empty() ? next : std::min(next, replaced_.begin()->first);
      while (!stopped_ && clock_.Now() < wake) clock_.AwaitUntil(changed_, mutex_, wake);
      if (stopped_) return;
    }
    const bool polls = clock_.Now() >= next;
    const absl::Status status = Guarded([&] {
      RetireDue();
      if (polls) Poll();
      hooks_.upkeep();
    });
    if (!status.ok()) spdlog::warn("model repository: {}", std::string(status.message()));
    if (polls) next = clock_.Now() + settings_.repository_poll;
  }
}

void ModelRepository::Poll() {
  const absl::StatusOr<RepositoryScan> scan = ScanRepository(settings_.model_repository);
  const std::string error(scan.status().message());
  if (error != std::exchange(last_error_, error) && !scan.ok()) {
    spdlog::warn("model repository: unchanged, because it cannot be listed: {}", error);
  }
  if (scan.ok()) UpdateAll(*scan, /*first=*/false);
}

void ModelRepository::UpdateAll(const RepositoryScan& scan, bool first) {
  LogIgnored(scan);
  std::vector<std::string> gone;
  for (const auto& [name, model] : models_) {
    if (scan.models.count(name) == 0) gone.push_back(name);
  }
  for (const std::string& name : gone) {
    Update(name, {}, first);
    models_.erase(name);
  }
  for (const auto& [name, versions] : scan.models) {
    if (IsStopped()) return;
    if (other_names_.count(name) == 0) Update(name, versions, first);
  }
}

void ModelRepository::LogIgnored(const RepositoryScan& scan) {
  std::set<std::string> ignored(scan.ignored.begin(), scan.ignored.end());
  for (const auto& [name, versions] : scan.models) {
    const auto other = other_names_.find(name);
    if (other == other_names_.end()) continue;
    ignored.insert(absl::StrCat(settings_.model_repository, "/", name, ": ", other->second, " ",
                                name, " has that name"));
  }
  for (const std::string& each : ignored) {
    if (ignored_.count(each) == 0) spdlog::warn("model repository: ignored {}", each);
  }
  ignored_ = std::move(ignored);
}

void ModelRepository::Update(const std::string& name, const std::vector<VersionFolder>& versions,
                             bool first) {
  if (!ServeNewest(name, versions, first) && !IsStopped()) Serve(name, nullptr);
  Model& model = models_[name];
  std::map<int64_t, Refused> refused;
  model.seen.clear();
  for (const VersionFolder& version : versions) {
    model.seen[version.version] = version.files;
    const auto was = model.refused.find(version.version);
    if (was != model.refused.end()) refused.insert(*was);
  }
  model.refused = std::move(refused);
  std::vector<RefusedVersion> told;
  for (auto each = model.refused.rbegin(); each != model.refused.rend(); ++each) {
    told.push_back({each->first, each->second.reason});
  }
  table_.SetRefused(name, std::move(told));
}

bool ModelRepository::ServeNewest(const std::string& name,
                                  const std::vector<VersionFolder>& versions, bool first) {
  Model& model = models_[name];
  bool any_may_be_loaded = false;
  for (const VersionFolder& version : versions) {
    if (model.served != nullptr && model.served->version == version.version) return true;
    const auto refused = model.refused.find(version.version);
    if (refused != model.refused.end() && refused->second.files == version.files &&
        !refused->second.may_fit) {
      continue;
    }
    const auto seen = model.seen.find(version.version);
    if (!first && (seen == model.seen.end() || seen->second != version.files)) {
      any_may_be_loaded = true;
      continue;
    }
    if (Load(name, version)) return true;
  }
  return any_may_be_loaded;
}

bool ModelRepository::Load(const std::string& name, const VersionFolder& version) {
  absl::StatusOr<std::shared_ptr<const ServedModel>> loaded = hooks_.load(name, version);
  if (IsStopped()) return false;
  if (loaded.ok() && ListFiles(version.path) != version.files) {
    loaded = absl::AbortedError("its files changed while they were being read");
  }
  if (!loaded.ok()) {
    Refuse(name, version, loaded.status());
    return false;
  }
  hooks_.on_load(name, true);
  Serve(name, *std::move(loaded));
  return true;
}

void ModelRepository::Refuse(const std::string& name, const VersionFolder& version,
                             const absl::Status& why) {
  Refused refused = {version.files, absl::IsResourceExhausted(why),
                     ReasonFor(name, version, std::string(why.message()))};
  Refused& known = models_[name].refused[version.version];
  const bool is_known = known.files == refused.files && known.may_fit == refused.may_fit;
  known = std::move(refused);
  if (is_known) return;
  hooks_.on_load(name, false);
  spdlog::warn("model {}: version {} not served: {}", name, version.version,
               std::string(why.message()));
}

void ModelRepository::Serve(const std::string& name, std::shared_ptr<const ServedModel> model) {
  std::shared_ptr<const ServedModel>& served = models_[name].served;
  if (model == served) return;
  ServedModels models = *table_.Snapshot();
  if (model == nullptr) {
    models.erase(name);
  } else {
    models[name] = model;
  }
  const bool was_served = served != nullptr, is_served = model != nullptr;
  const std::string before = was_served ? absl::StrCat(served->version) : "none";
  Replaced replaced;
  if (was_served) replaced.emplace(clock_.Now() + settings_.drain_timeout, served);
  table_.Replace(std::move(models));
  // Nothing throws between the two, so that every replaced version is retired.
  replaced_.merge(replaced);
  served = std::move(model);
  if (was_served != is_served) hooks_.on_change(name, is_served);
  if (is_served) {
    spdlog::info("model {}: serving version {}, previously: {}", name, served->version, before);
  } else {
    spdlog::info("model {}: serving no version, previously: {}", name, before);
  }
}

void ModelRepository::RetireDue() {
  const absl::Time now = clock_.Now();
  bool any = false;
  for (const auto& [until, model] : replaced_) {
    // No request can find it any more, except those that already use it.
    const bool used = model.use_count() > 1 || model->retired.use_count() > 1;
    if (used && until > now) continue;
    model->retired->store(true);
    any = true;
  }
  if (!any) return;
  // An exception leaves them in the list, so that the next time does the rest.
  hooks_.on_retired();
  std::erase_if(replaced_, [](const auto& each) {
    const ServedModel& model = *each.second;
    if (!model.retired->load()) return false;
    spdlog::info("model {}: retired version {}", model.name, model.version);
    return true;
  });
}

}  // namespace attendant::server
