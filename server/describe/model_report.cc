#include "server/describe/model_report.h"

#include <cstdio>
#include <utility>

#include "absl/types/span.h"
#include "engine/base/cpu_budget.h"
#include "engine/kernels/gemm/compute_support.h"
#include "engine/kernels/isa.h"
#include "engine/layers/encoder.h"
#include "server/models/model_message.h"

namespace attendant::server {
namespace {

void AddRefusal(const absl::Status& status, ModelReport& report) {
  for (std::string& problem : ListProblems(status)) report.refusals.push_back(std::move(problem));
}

std::vector<WeightMemory> ListWeightMemory(const ModelDescription& description,
                                           WeightType weights) {
  std::vector<WeightMemory> memory;
  for (const ComputeType type : kComputeTypes) {
    const ComputeMode mode = {.type = type,
                              .weights = type == ComputeType::kF32 ? weights : WeightType::kAuto};
    memory.push_back({type, PredictWeightBytes(description, mode).value_or(0),
                      std::string(CheckComputeMode(mode).message())});
  }
  return memory;
}

void AddMemory(const Settings& settings, ModelReport& report) {
  const absl::Span<const OpenedModel> models(&report.model, 1);
  const ModelDescription& description = report.model.checkpoint.description;
  const ComputeMode& mode = report.model.setting.compute;
  report.weight_memory = ListWeightMemory(description, mode.weights);
  report.run_tokens = RunTokens(settings);
  const absl::StatusOr<int64_t> run = EncoderRun::PredictBytes(
      description, report.run_tokens, report.plan.threads_per_instance, mode);
  report.run_bytes = run.value_or(0);
  const absl::Status fits = LargestRequestBytes(models, settings.max_request_tokens).status();
  const absl::Status computes = CheckComputeMode(mode);
  AddRefusal(fits, report);
  AddRefusal(computes, report);
  if (!fits.ok() || !computes.ok()) return;
  AddRefusal(CheckMemory(models, settings, report.plan, report.limit), report);
  const absl::StatusOr<MemoryNeed> need = PredictMemory(models, settings, report.plan);
  if (need.ok()) report.need = *need;
}

}  // namespace

ModelReport InspectModel(const Settings& settings, const ThreadPlan& plan, const MemoryLimit& limit,
                         bool ranks) {
  ModelReport report;
  report.plan = plan;
  report.limit = limit;
  const ModelSetting& setting = report.model.setting = settings.models.front();
  Checkpoint& found = report.model.checkpoint;
  AddRefusal(InspectCheckpoint(setting.place(), CheckpointOptionsOf(setting, settings), found),
             report);
  if (found.description.layer.hidden_size == 0) return report;  // nothing is known of it
  const absl::Status sound = PredictWeightBytes(found.description, {}).status();
  if (!sound.ok()) {
    AddRefusal(sound, report);
    return report;
  }
  report.weights = ListWeightUses(found.description);
  AddMemory(settings, report);
  std::vector<std::string> notes;  // which the server logs
  report.tokenizer =
      LoadModelTokenizer(found.description, found.tokenization.files, RealClock(), notes);
  if (found.weights == nullptr) return report;
  for (std::string& problem : ListValueProblems(found.description, *found.weights)) {
    report.refusals.push_back(std::move(problem));
  }
  if (!ranks) return report;
  absl::StatusOr<std::vector<QueryKeyRanks>> measured =
      MeasureQueryKeyRanks(found.description, *found.weights);
  if (measured.ok()) report.ranks = std::move(*measured);
  report.no_ranks = std::string(measured.status().message());
  return report;
}

v1::GetModelResponse Describe(const ModelReport& report) {
  const Checkpoint& found = report.model.checkpoint;
  const ComputeMode& mode = report.model.setting.compute;
  v1::GetModelResponse described;
  described.set_hub_repository(report.model.setting.origin.repository);
  described.set_hub_commit(report.model.setting.origin.commit);
  SetDescription(found.description, found.tokenization, described);
  if (!report.weights.empty()) SetStageCosts(found.description, described);
  if (report.tokenizer != nullptr) SetTexts(*report.tokenizer, described);
  described.clear_cost_model();  // which is timed when a model is loaded
  SetComputeMode(mode, described);
  if (mode.gemm != Gemm::kAuto) described.set_gemm(Name(mode.gemm));
  if (mode.weights != WeightType::kAuto) described.set_weight_type(Name(mode.weights));
  for (const WeightMemory& memory : report.weight_memory) {
    if (memory.type == mode.type) described.set_weight_bytes(memory.bytes);
  }
  described.mutable_unused_tensors()->Add(found.unused_tensors.begin(), found.unused_tensors.end());
  SetThreadPlan(report.plan, described);
  return described;
}

int DescribeModel(const Settings& settings, const DescribeOptions& options) {
  const absl::Status capped = CapIsa(settings.isa);
  const ThreadPlan plan = MakeThreadPlan(settings, MeasureCpuBudget(), NumaNodesOf(settings));
  ModelReport report = InspectModel(settings, plan, MemoryLimitOf(settings), options.ranks);
  if (!capped.ok()) report.refusals.emplace_back(capped.message());
  const std::string text = options.json ? ToJson(report) : ToText(report);
  const bool written = std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  if (!written) std::fputs("attendant-server: stdout: cannot be written\n", stderr);
  return written && report.refusals.empty() ? 0 : 1;
}

}  // namespace attendant::server
