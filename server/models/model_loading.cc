#include "server/models/model_loading.h"

#include <malloc.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <future>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/shape.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/files/input_file.h"
#include "engine/checkpoint/norm_overlay.h"
#include "engine/layers/encoder.h"
#include "engine/model/pruned_heads.h"
#include "proto/byte_text.h"
#include "server/host/node_binding.h"
#include "server/hub/hub_reference.h"
#include "server/models/product_plans.h"

namespace attendant::server {
namespace {

using proto::InMebibytes;

// Stands for sums that overflow. This suffices, because sums are only compared with a limit.
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

constexpr int64_t kConnectionBytes = int64_t{64} << 20;  // what gRPC takes besides messages
constexpr int64_t kMostWithoutLimit = int64_t{2} << 30;
constexpr absl::Duration kProgressInterval = absl::Seconds(1);

absl::Status ForModel(const std::string& name, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("model ", name, ": ", status.message()));
}

// Returns the status with how to name a repository of the Hub, if the source could be meant so.
absl::Status WithHubHint(const ModelSetting& setting, const absl::Status& status) {
  const std::string& source = setting.source;
  if (!LooksLikeRepository(source) || PathExists(source)) return status;
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), "; to serve that Hub repository: --model ",
                                   setting.name, "=hf:", source));
}

void LogNotes(const OpenedModel& model) {
  for (const std::string& warning : model.checkpoint.warnings) {
    spdlog::warn("model {}: {}", model.setting.name, warning);
  }
  const std::vector<std::string>& unused = model.checkpoint.unused_tensors;
  if (unused.empty()) return;
  spdlog::info("model {}: ignored {} tensors outside the encoder: {}", model.setting.name,
               unused.size(), absl::StrJoin(unused, ", "));
}

using LoadedEncoder = absl::StatusOr<std::shared_ptr<const Encoder>>;

// Loads an encoder. `base` is the model below an overlay, and null for any other model.
LoadedEncoder LoadEncoder(const OpenedModel& opened, const Encoder* base, int threads,
                          const Clock& clock) {
  if (base != nullptr) {
    return Encoder::LoadOverlay(*base, opened.checkpoint.description, *opened.checkpoint.weights);
  }
  absl::Time next = clock.Now() + kProgressInterval;
  const auto log_progress = [&](int64_t done, int64_t total) {
    if (clock.Now() < next) return;
    next = clock.Now() + kProgressInterval;
    const double percent =
        total == 0 ? 100 : 100.0 * static_cast<double>(done) / static_cast<double>(total);
    spdlog::info("model {}: read {:.0f} % of {}", opened.setting.name, percent, InMebibytes(total));
  };
  return Encoder::Load(opened.checkpoint.description, *opened.checkpoint.weights, log_progress,
                       opened.setting.compute, threads);
}

// Loads the copies of a model. Each is first written by a thread on its node, so that its pages are
// placed there. The thread ends, and with it those of its team (ThreadTeam).
absl::StatusOr<std::vector<std::shared_ptr<const Encoder>>> LoadCopies(const OpenedModel& opened,
                                                                       const ServedModel* base,
                                                                       const ThreadPlan& plan,
                                                                       const Clock& clock) {
  std::vector<std::shared_ptr<const Encoder>> copies;
  for (int i = 0; i < plan.copies(); ++i) {
    const auto load = [&, i] {
      if (!plan.nodes.empty()) BindToNode(plan.nodes[i]);
      return LoadEncoder(opened, base == nullptr ? nullptr : base->copy(i).get(),
                         plan.threads_per_instance, clock);
    };
    ASSIGN_OR_RETURN(auto copy, std::async(std::launch::async, load).get());
    copies.push_back(std::move(copy));
  }
  return copies;
}

// Logs the plans of an overlay only if they differ from its base's, which have been logged already.
void LogProductPlans(const std::string& name, const Encoder& encoder, const ServedModel* base) {
  const std::vector<ProductPlan>& plans = encoder.product_plans();
  if (plans.empty() || (base != nullptr && plans == base->encoder->product_plans())) return;
  spdlog::info("model {}: {}", name, Describe(plans));
}

std::string SourceOf(const ModelSetting& setting) {
  if (setting.origin.commit.empty()) return setting.source;
  return absl::StrCat(setting.source, " (commit ", setting.origin.commit, ")");
}

// Loads the tokenizer; its files are not needed afterwards.
void SetTokenizer(OpenedModel& opened, const ServedModel* base, const Clock& clock,
                  ServedModel& model) {
  if (base != nullptr) {
    model.tokenizer = base->tokenizer;
    return;
  }
  std::map<std::string, std::string> files = std::move(opened.checkpoint.tokenization.files);
  opened.checkpoint.tokenization.files.clear();
  std::vector<std::string> notes;
  model.tokenizer = LoadModelTokenizer(opened.checkpoint.description, files, clock, notes);
  for (const std::string& note : notes) spdlog::info("model {}: {}", model.name, note);
  ApplyTokenizerClass(files, opened.checkpoint.tokenization);
  if (model.tokenizer->tokenizer != nullptr) return;
  spdlog::info("model {} does not accept texts: {}", model.name, model.tokenizer->why_none);
}

// Returns an upper bound of a tokenizer's memory: 5 times the size of its files, of which 2.7 to
// 4.1 times were measured, plus the tokenizer.json for clients. Loading briefly takes up to 14
// times the size, when no request holds memory yet.
CheckedSize PredictTokenizer(const Tokenization& tokenization) {
  CheckedSize bytes = static_cast<int64_t>(tokenization.tokenizer_json.size());
  for (const auto& [name, contents] : tokenization.files) {
    bytes = bytes + CheckedSize(5) * static_cast<int64_t>(contents.size());
  }
  return bytes;
}

absl::StatusOr<std::shared_ptr<const ServedModel>> LoadModel(OpenedModel opened,
                                                             const ServedModel* base,
                                                             const ThreadPlan& plan,
                                                             const Clock& clock) {
  const std::string& name = opened.setting.name;
  LogNotes(opened);
  const absl::Time started = clock.Now();
  auto copies = LoadCopies(opened, base, plan, clock);
  if (!copies.ok()) return ForModel(name, copies.status());
  const Encoder& encoder = *copies->front();
  const ModelDescription& description = encoder.description();
  spdlog::info(
      "model {}: {} from {}, {} layers of width {}, {} heads, computed in {}{}, {} of weights{}, "
      "loaded in {:.1f} s",
      name, description.family,
      base == nullptr ? SourceOf(opened.setting)
                      : absl::StrCat(base->name, " with ", opened.setting.overlay),
      description.layers, description.layer.hidden_size, description.layer.attention.heads,
      Name(opened.setting.compute.type), opened.setting.compute.emulate ? " (emulated)" : "",
      InMebibytes(encoder.weight_bytes()),
      plan.copies() > 1 ? absl::StrCat(" on each of ", plan.copies(), " NUMA nodes") : "",
      absl::ToDoubleSeconds(clock.Now() - started));
  LogProductPlans(name, encoder, base);
  auto model = std::make_shared<ServedModel>(name, copies->front(),
                                             std::move(opened.checkpoint.unused_tensors));
  SetTokenizer(opened, base, clock, *model);
  model->tokenization =
      base == nullptr
          ? std::make_shared<const Tokenization>(std::move(opened.checkpoint.tokenization))
          : base->tokenization;
  if (base != nullptr) model->base = base->name;
  model->origin = base == nullptr ? opened.setting.origin : base->origin;
  model->further_copies.assign(copies->begin() + 1, copies->end());
  return model;
}

// Returns the most memory, in bytes, that the model will hold while it is loaded and afterwards.
absl::StatusOr<int64_t> PredictWeights(const OpenedModel& model) {
  if (model.setting.overlay.empty()) {
    return Encoder::PredictLoadBytes(model.checkpoint.description, model.setting.compute);
  }
  CheckedSize bytes;
  for (const CheckpointTensor& norm : model.checkpoint.tensors) {
    bytes = bytes + ByteCount(norm.shape, DataType::kFloat32);
  }
  if (model.setting.prune_file.empty()) return bytes.value_or(kMost);
  const absl::StatusOr<int64_t> attention =
      Encoder::PredictOverlayBytes(model.checkpoint.description, model.setting.compute);
  if (!attention.ok()) return attention;
  return (bytes + *attention).value_or(kMost);
}

// Opens the base of an overlay again, without the attention heads that the overlay leaves out.
absl::StatusOr<Checkpoint> OpenPrunedBase(const ModelSetting& overlay, const OpenedModel& base,
                                          const Settings& settings) {
  if (HasPrunedHeads(base.checkpoint.description)) {
    return absl::InvalidArgumentError(
        absl::StrCat("prune: expected a base with all of its heads; got ", base.setting.name,
                     ", which is already pruned"));
  }
  CheckpointOptions options = CheckpointOptionsOf(base.setting, settings);
  options.prune_file = overlay.prune_file;
  return OpenCheckpoint(base.setting.place(), options);
}

// Opens an overlay. Its base must be among `models`; the overlay computes as its base does.
absl::StatusOr<OpenedModel> OpenOverlay(ModelSetting setting, absl::Span<const OpenedModel> models,
                                        const Settings& settings) {
  const auto base = std::find_if(models.begin(), models.end(), [&](const OpenedModel& model) {
    return model.setting.name == setting.source;
  });
  const CheckpointOptions options = CheckpointOptionsOf(setting, settings);
  absl::StatusOr<Checkpoint> overlay;
  if (setting.prune_file.empty()) {
    overlay = OpenNormOverlay(setting.overlay, base->checkpoint, options);
  } else {
    ASSIGN_OR_RETURN(Checkpoint pruned, OpenPrunedBase(setting, *base, settings));
    overlay = OpenPrunedOverlay(setting.overlay, std::move(pruned), options);
  }
  if (!overlay.ok()) return overlay.status();
  setting.compute = base->setting.compute;
  return OpenedModel{std::move(setting), *std::move(overlay)};
}

// Returns the widest input row of models that may be added later.
int64_t WidthToCome(const Settings& settings) {
  return settings.model_repository.empty() ? 0 : settings.repository_width;
}

}  // namespace

int64_t MemoryNeed::total() const {
  return (CheckedSize(weights) + activations + requests + transport + cache).value_or(kMost);
}

int64_t RunTokens(const Settings& settings) {
  return std::max(settings.max_batch_tokens, settings.max_request_tokens);
}

absl::StatusOr<MemoryNeed> PredictMemory(absl::Span<const OpenedModel> models,
                                         const Settings& settings, const ThreadPlan& plan) {
  ASSIGN_OR_RETURN(const int64_t largest,
                   LargestRequestBytes(models, settings.max_request_tokens, WidthToCome(settings)));
  MemoryNeed need;
  CheckedSize all_weights, all_runs;
  for (const OpenedModel& model : models) {
    const ModelDescription& description = model.checkpoint.description;
    const absl::StatusOr<int64_t> weights = PredictWeights(model);
    if (!weights.ok()) return ForModel(model.setting.name, weights.status());
    const absl::StatusOr<int64_t> run = EncoderRun::PredictBytes(
        description, RunTokens(settings), plan.threads_per_instance, model.setting.compute);
    if (!run.ok()) return ForModel(model.setting.name, run.status());
    all_weights = all_weights + CheckedSize(*weights) * plan.copies() +
                  PredictTokenizer(model.checkpoint.tokenization);
    all_runs = all_runs + CheckedSize(*run) * plan.instances;
  }
  need.weights = all_weights.value_or(kMost);
  need.activations = all_runs.value_or(kMost);
  need.requests = 2 * largest;
  need.transport = TransportQuota(need.requests) - need.requests;
  need.cache = settings.cache_bytes;
  return need;
}

MemoryLimit MemoryLimitOf(const Settings& settings) {
  if (settings.memory_limit_bytes == 0) return MeasureMemoryLimit({}, "/proc/meminfo");
  return {settings.memory_limit_bytes, "of --memory-limit-bytes"};
}

CheckpointOptions CheckpointOptionsOf(const ModelSetting& setting, const Settings& settings) {
  return {setting, settings.max_model_bytes};
}

absl::StatusOr<std::vector<OpenedModel>> OpenModels(const Settings& settings) {
  std::vector<OpenedModel> models;
  for (const ModelSetting& setting : settings.models) {
    if (!setting.overlay.empty()) continue;
    absl::StatusOr<Checkpoint> checkpoint =
        OpenCheckpoint(setting.place(), CheckpointOptionsOf(setting, settings));
    if (!checkpoint.ok()) {
      return ForModel(setting.name, WithHubHint(setting, checkpoint.status()));
    }
    models.push_back({setting, *std::move(checkpoint)});
  }
  for (const ModelSetting& setting : settings.models) {
    if (setting.overlay.empty()) continue;
    absl::StatusOr<OpenedModel> overlay = OpenOverlay(setting, models, settings);
    if (!overlay.ok()) return ForModel(setting.name, overlay.status());
    models.push_back(*std::move(overlay));
  }
  return models;
}

absl::StatusOr<int64_t> LargestRequestBytes(absl::Span<const OpenedModel> models,
                                            int64_t max_request_tokens, int64_t least_width) {
  constexpr int64_t kBesideARow = 32, kBesideTheRows = 64 << 10;
  int64_t width = least_width;
  for (const OpenedModel& model : models) {
    const ModelDescription& description = model.checkpoint.description;
    width = std::max(width, description.layer.widest_input());
    if (const auto& patches = description.patch_embedding) {
      width = std::max(width, patches->feature_width);
    }
  }
  const CheckedSize bytes = (CheckedSize(width) * 4 + kBesideARow) * max_request_tokens;
  // The size of a gRPC message has to fit into an int.
  if (!bytes.ok() || bytes.value() > std::numeric_limits<int>::max() - kBesideTheRows) {
    return absl::InvalidArgumentError(
        absl::StrCat("--max-request-tokens: ", max_request_tokens, " rows of ", width,
                     " float32 do not fit into a message (at most 2 GiB)"));
  }
  return bytes.value() + kBesideTheRows;
}

int64_t TransportQuota(int64_t request_budget) {
  return kConnectionBytes + request_budget + request_budget / 4;
}

int64_t RequestBudget(const MemoryNeed& need, const MemoryLimit& limit) {
  const int64_t rest =
      limit.bytes - need.weights - need.activations - need.cache - kConnectionBytes;
  const int64_t budget = rest / 5 * 4;
  return limit.of_machine ? std::min(budget, kMostWithoutLimit) : budget;
}

absl::Status CheckMemory(absl::Span<const OpenedModel> models, const Settings& settings,
                         const ThreadPlan& plan, const MemoryLimit& limit) {
  ASSIGN_OR_RETURN(const MemoryNeed need, PredictMemory(models, settings, plan));
  if (need.total() <= limit.bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "needs ", InMebibytes(need.total()), " of memory, but the limit ", limit.reason, " is ",
      InMebibytes(limit.bytes), ": weights ", InMebibytes(need.weights),
      plan.copies() > 1 ? absl::StrCat(" in ", plan.copies(), " copies (--numa)") : "",
      ", activations ", InMebibytes(need.activations),
      " (--max-request-tokens, --instances), at least ", InMebibytes(need.requests),
      " for requests (--max-request-tokens) and ", InMebibytes(need.transport), " for gRPC",
      need.cache > 0 ? absl::StrCat(", and ", InMebibytes(need.cache), " for --cache-bytes") : ""));
}

absl::StatusOr<ServedModels> LoadModels(std::vector<OpenedModel> models, const ThreadPlan& plan,
                                        const Clock& clock) {
  ServedModels served;
  for (OpenedModel& opened : models) {
    const std::string name = opened.setting.name;
    const ServedModel* base =
        opened.setting.overlay.empty() ? nullptr : served.at(opened.setting.source).get();
    ASSIGN_OR_RETURN(std::shared_ptr<const ServedModel> model,
                     LoadModel(std::move(opened), base, plan, clock));
    served[name] = std::move(model);
  }
  // Return to the kernel the memory that reading and packing have freed. It was measured to be a
  // quarter of the size of the weights.
  malloc_trim(0);
  return served;
}

}  // namespace attendant::server
