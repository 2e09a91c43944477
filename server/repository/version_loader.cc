#include "server/repository/version_loader.h"

#include <malloc.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/files/input_file.h"
#include "proto/byte_text.h"
#include "server/base/fault.h"
#include "server/execution/prepare_model.h"
#include "server/host/node_binding.h"
#include "server/repository/probe_model.h"
#include "server/settings/model_setting.h"

namespace attendant::server {

namespace {

using proto::InMebibytes;

// The keys of --model for a version are in a file of its folder, if they are not the defaults.
constexpr char kOptionsFile[] = "attendant.options";
constexpr int64_t kMostOptionsBytes = 4096;

absl::StatusOr<ModelSetting> ReadSetting(const std::string& name, const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/", kOptionsFile);
  std::string text;
  if (PathExists(path)) {
    ASSIGN_OR_RETURN(const std::string contents, ReadSmallFile(path, kMostOptionsBytes));
    text = std::string(absl::StripAsciiWhitespace(contents));
  }
  absl::StatusOr<ModelSetting> setting = ParseModelKeys(text);
  if (setting.ok() && !setting->overlay.empty()) {
    setting = absl::InvalidArgumentError("overlay: not supported in a model repository");
  }
  // Clients see errors about a file, so an error must not contain a path of this machine.
  if (setting.ok() && absl::StartsWith(setting->prune_file, "/")) {
    setting = absl::InvalidArgumentError(
        "prune: expected a file in the same directory; got an absolute path");
  }
  if (setting.ok() && absl::StartsWith(setting->adapter, "/")) {
    setting = absl::InvalidArgumentError(
        "adapter: expected a directory in the same directory; got an absolute path");
  }
  if (!setting.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", setting.status().message()));
  }
  setting->name = name;
  setting->source = folder;
  if (!setting->prune_file.empty()) {
    setting->prune_file = absl::StrCat(folder, "/", setting->prune_file);
  }
  if (!setting->adapter.empty()) setting->adapter = absl::StrCat(folder, "/", setting->adapter);
  return setting;
}

// Weights that can be read until `stopped` is true.
class StoppableWeights final : public WeightSource {
 public:
  StoppableWeights(std::unique_ptr<WeightSource> weights, const std::atomic<bool>& stopped)
      : weights_(std::move(weights)), stopped_(stopped) {}

  bool Has(absl::string_view name) const override { return weights_->Has(name); }
  absl::Status Read(absl::string_view name, absl::Span<float> target) override {
    if (stopped_) return absl::CancelledError("the server is stopping");
    return weights_->Read(name, target);
  }
  absl::StatusOr<bool> ReadStored(absl::string_view name, DataType type,
                                  absl::Span<char> target) override {
    if (stopped_) return absl::CancelledError("the server is stopping");
    return weights_->ReadStored(name, type, target);
  }

 private:
  const std::unique_ptr<WeightSource> weights_;
  const std::atomic<bool>& stopped_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const ServedModel>> VersionLoader::Load(
    const std::string& name, const VersionFolder& version) {
  absl::StatusOr<std::shared_ptr<const ServedModel>> loaded;
  const absl::Status status = Guarded([&] { loaded = TryLoad(name, version); });
  if (!status.ok()) loaded = status;
  if (!loaded.ok()) CollectFreed();
  return loaded;
}

absl::StatusOr<std::shared_ptr<const ServedModel>> VersionLoader::TryLoad(
    const std::string& name, const VersionFolder& version) {
  ASSIGN_OR_RETURN(ModelSetting setting, ReadSetting(name, version.path));
  ASSIGN_OR_RETURN(Checkpoint checkpoint,
                   OpenCheckpoint(version.path, CheckpointOptionsOf(setting, options_.settings)));
  checkpoint.weights = std::make_unique<StoppableWeights>(std::move(checkpoint.weights), stopped_);
  std::vector<OpenedModel> opened;
  opened.push_back({std::move(setting), std::move(checkpoint)});
  ASSIGN_OR_RETURN(const MemoryNeed need, TakeMemory(opened.front()));

  std::optional<FreshPages> fresh_pages;
  if (!options_.plan.nodes.empty()) fresh_pages.emplace();
  ASSIGN_OR_RETURN(const auto models, LoadModels(std::move(opened), options_.plan, options_.clock));
  ServedModel loaded = *models.at(name);
  loaded.version = version.version;
  std::shared_ptr<const ServedModel> prepared =
      PrepareModel(loaded, nullptr, RunTokens(options_.settings), options_.plan, options_.clock);
  RETURN_IF_ERROR(ProbeModel(*prepared));
  alive_.emplace_back(prepared, need);
  shrunk_ = false;
  return prepared;
}

absl::StatusOr<MemoryNeed> VersionLoader::TakeMemory(const OpenedModel& opened) {
  const absl::Span<const OpenedModel> models(&opened, 1);
  ASSIGN_OR_RETURN(const MemoryNeed own, PredictMemory(models, options_.settings, options_.plan));
  if (own.requests > options_.need.requests) {
    return absl::InvalidArgumentError(
        absl::StrCat("its largest request has ", own.largest_request(),
                     " bytes, but the server receives at most ", options_.need.largest_request(),
                     ", which --repository-width fixed at startup"));
  }
  const MemoryNeed alive = NeedOfAlive();
  const int64_t needed = MemoryNeed{own.weights, own.activations}.total();
  const int64_t available = std::max<int64_t>(0, options_.limit.bytes - alive.total());
  if (needed > available) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "needs ", InMebibytes(needed), " of memory, but ", InMebibytes(available),
        " is available: the limit ", options_.limit.reason, " is ",
        InMebibytes(options_.limit.bytes), ", loaded models and versions use ",
        InMebibytes(alive.weights + alive.activations), ", and requests need at least ",
        InMebibytes(alive.requests + alive.transport),
        alive.cache > 0 ? absl::StrCat(", and --cache-bytes ", InMebibytes(alive.cache)) : ""));
  }
  MemoryNeed both = alive;
  both.weights += own.weights;
  both.activations += own.activations;
  const int64_t budget = RequestBudget(both, options_.limit);
  if (!options_.set_budget(budget)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("needs ", InMebibytes(needed), " of memory, which would leave ",
                     InMebibytes(budget), " for requests, which currently use more"));
  }
  shrunk_ = true;
  return own;
}

MemoryNeed VersionLoader::NeedOfAlive() const {
  MemoryNeed need = options_.need;
  for (const auto& [model, own] : alive_) {
    if (model.expired()) continue;
    need.weights += own.weights;
    need.activations += own.activations;
  }
  return need;
}

void VersionLoader::CollectFreed() {
  const size_t freed = std::erase_if(alive_, [](const auto& each) { return each.first.expired(); });
  if (freed == 0 && !shrunk_) return;
  shrunk_ = false;
  malloc_trim(0);  // freed but unreturned memory counts as resident
  options_.set_budget(RequestBudget(NeedOfAlive(), options_.limit));
}

}  // namespace attendant::server
