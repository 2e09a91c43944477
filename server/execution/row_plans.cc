#include "server/execution/row_plans.h"

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace attendant::server {
namespace {

const std::string& WeightsOf(const ServedModel& model) {
  return model.base.empty() ? model.name : model.base;
}

}  // namespace

std::string Describe(const RowPlan& plan) {
  std::string text = plan.rows_from == 0
                         ? "one team for each product"
                         : absl::StrCat("one team for each product below ", plan.rows_from,
                                        " tokens, rows for each thread from there");
  if (plan.trials.empty()) return absl::StrCat(text, "; nothing was timed");
  return absl::StrCat(text, "; rows against team: ",
                      absl::StrJoin(plan.trials, ", ", [](std::string* out, const RowTrial& trial) {
                        absl::StrAppendFormat(out, "%d tokens %.2fx", trial.tokens,
                                              trial.speedup());
                      }));
}

void RowPlans::Apply(const ServedModel& model, EncoderRun& run) {
  const absl::MutexLock lock(&mutex_);
  const auto [entry, is_new] = plans_.try_emplace(WeightsOf(model));
  RowPlan& plan = entry->second;
  if (is_new) {
    const ThreadPlan& threads = context_.thread_plan;
    plan = run.ChooseRowPlan(threads.row_policy, [this] { return context_.clock.Now(); });
    if (threads.row_policy == RowPolicy::kTimed && threads.threads_per_instance > 1) {
      spdlog::info("model {}: {}", entry->first, Describe(plan));
    }
  }
  run.SetRowPlan(plan);
}

int64_t RowPlans::RowsFrom(const ServedModel& model) const {
  const absl::MutexLock lock(&mutex_);
  const auto entry = plans_.find(WeightsOf(model));
  return entry == plans_.end() ? 0 : entry->second.rows_from;
}

}  // namespace attendant::server
