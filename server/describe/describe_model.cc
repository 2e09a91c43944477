#include "server/describe/describe_model.h"

#include <cstdio>

#include "engine/base/cpu_budget.h"
#include "engine/kernels/isa.h"
#include "server/describe/model_report.h"
#include "server/host/thread_plan.h"

namespace attendant::server {
namespace {

ModelReport Inspect(const Settings& settings, bool ranks) {
  const absl::Status capped = CapIsa(settings.isa);
  const ThreadPlan plan = MakeThreadPlan(settings, MeasureCpuBudget(), NumaNodesOf(settings));
  ModelReport report = InspectModel(settings, plan, MemoryLimitOf(settings), ranks);
  if (!capped.ok()) report.refusals.emplace_back(capped.message());
  return report;
}

}  // namespace

int DescribeModel(const Settings& settings, const DescribeOptions& options) {
  const ModelReport report = Inspect(settings, options.ranks);
  const std::string text = options.json ? ToJson(report) : ToText(report);
  const bool written = std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  return written && report.refusals.empty() ? 0 : 1;
}

}  // namespace attendant::server
