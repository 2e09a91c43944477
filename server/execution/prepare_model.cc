#include "server/execution/prepare_model.h"

#include <spdlog/spdlog.h>

#include <atomic>
#include <future>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "server/execution/cost_trials.h"
#include "server/host/node_binding.h"

namespace attendant::server {
namespace {

// Memory is placed, and threads are started, on the node of the thread that does it first. `work`
// runs on a new thread. When it ends, so do the threads of its team (ThreadTeam).
void OnNodeOf(int instance, const ThreadPlan& plan, absl::FunctionRef<void()> work) {
  std::async(std::launch::async, [&] {
    if (!plan.nodes.empty()) BindToNode(plan.nodes[plan.CopyOf(instance)]);
    work();
  }).get();
}

RowPlan ChooseRowPlan(const std::string& name, EncoderRun& run, const RunOptions& options) {
  const ThreadPlan& threads = options.thread_plan;
  RowPlan plan = run.ChooseRowPlan(threads.row_policy, [&] { return options.clock.Now(); });
  if (threads.row_policy == RowPolicy::kTimed && threads.threads_per_instance > 1) {
    spdlog::info("model {}: {}", name, Describe(plan));
  }
  return plan;
}

}  // namespace

std::string Describe(const RowPlan& plan) {
  std::string text = plan.rows_from == 0
                         ? "one team for each product"
                         : absl::StrCat("one team for each product below ", plan.rows_from,
                                        " tokens, separate rows for each thread otherwise");
  if (plan.trials.empty()) return absl::StrCat(text, "; not timed");
  return absl::StrCat(text, "; rows against team: ",
                      absl::StrJoin(plan.trials, ", ", [](std::string* out, const RowTrial& trial) {
                        absl::StrAppendFormat(out, "%d tokens %.2fx", trial.tokens,
                                              trial.speedup());
                      }));
}

std::shared_ptr<const ServedModel> PrepareModel(const ServedModel& loaded, const ServedModel* base,
                                                const RunOptions& options) {
  const ThreadPlan& plan = options.thread_plan;
  auto model = std::make_shared<ServedModel>(loaded);
  model->runs = std::make_shared<std::vector<EncoderRun>>();
  model->retired = std::make_shared<std::atomic<bool>>(false);  // not shared with `loaded`
  for (int instance = 0; instance < plan.instances; ++instance) {
    OnNodeOf(instance, plan, [&] {
      EncoderRun& run = model->runs->emplace_back(model->copy(plan.CopyOf(instance)),
                                                  options.max_tokens, plan.threads_per_instance);
      if (instance == 0) {
        model->row_plan =
            base != nullptr ? base->row_plan : ChooseRowPlan(model->name, run, options);
      }
      run.SetRowPlan(model->row_plan);
      if (instance == 0) TimeCosts(*model, base, run, options.clock);
    });
  }
  return model;
}

ServedModels PrepareModels(const ServedModels& loaded, const RunOptions& options) {
  ServedModels prepared;
  for (const bool overlays : {false, true}) {
    for (const auto& [name, model] : loaded) {
      if (model->base.empty() == overlays) continue;
      const ServedModel* base = overlays ? prepared.at(model->base).get() : nullptr;
      prepared[name] = PrepareModel(*model, base, options);
    }
  }
  return prepared;
}

}  // namespace attendant::server
