#include "server/execution/prepare_model.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <limits>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "server/host/node_binding.h"

namespace attendant::server {
namespace {

constexpr absl::Duration kBudget = absl::Milliseconds(300);
constexpr int kMostRounds = 5;
constexpr int64_t kShort = 16;  // the length of short sequences
constexpr int64_t kMany = 512;  // tokens

// Memory is placed, and threads are started, on the node of the thread that does it first. `work`
// runs on a new thread. When it ends, so do the threads of its team (ThreadTeam).
void OnNodeOf(int instance, const ThreadPlan& plan, absl::FunctionRef<void()> work) {
  std::async(std::launch::async, [&] {
    if (!plan.nodes.empty()) BindToNode(plan.nodes[plan.CopyOf(instance)]);
    work();
  }).get();
}

RowPlan ChooseRowPlan(const std::string& name, EncoderRun& run, const ThreadPlan& threads,
                      const Clock& clock) {
  RowPlan plan = run.ChooseRowPlan(threads.row_policy, [&] { return clock.Now(); });
  if (threads.row_policy == RowPolicy::kTimed && threads.threads_per_instance > 1) {
    spdlog::info("model {}: {}", name, Describe(plan));
  }
  return plan;
}

CostRates Measure(const CostModel& model, EncoderRun& run, const Clock& clock) {
  const MatrixView<float> input = run.input();
  int64_t most = std::min(kMany, input.rows);
  const int64_t longest = run.encoder().description().layer.attention.linformer.positions;
  if (longest > 0) most = std::min(most, longest);
  const int64_t length = std::min(kShort, std::max<int64_t>(1, most / 4));
  const int64_t sequences = most / length, tokens = sequences * length;
  for (int64_t r = 0; r < tokens; ++r) {
    for (int64_t c = 0; c < input.cols; ++c) {
      input.row(r)[c] = static_cast<float>((r * 31 + c * 101) % 257 - 128) / 64.0f;
    }
  }
  // A run without its time.
  const auto operations = [&](int64_t count, int64_t each) {
    CostTrial trial = model.OperationsOfLayer(count, each);
    trial.seconds = std::numeric_limits<double>::infinity();
    return trial;
  };
  // Runs the next layer, and keeps its time if that is the shortest so far. The layers take turns
  // because, in service, the weights of a layer have been evicted from the caches when it runs
  // again.
  int64_t layer = 0;
  const auto time = [&](int64_t count, int64_t each, CostTrial& trial) {
    std::vector<int32_t> cu_seqlens;
    for (int64_t i = 0; i <= count; ++i) cu_seqlens.push_back(static_cast<int32_t>(i * each));
    RunObserver no_observer;
    const absl::Time begin = clock.Now();
    const auto result = run.Encode(layer++ % run.encoder().description().layers, 1,
                                   {.cu_seqlens = cu_seqlens, .bias = {}}, no_observer);
    if (!result.ok()) return;
    trial.seconds = std::min(trial.seconds, absl::ToDoubleSeconds(clock.Now() - begin));
  };
  CostTrial few = operations(1, length), many = operations(sequences, length),
            longs = operations(1, tokens);
  CostTrial cold = few;  // the first run starts the threads and touches memory
  time(1, length, cold);
  const absl::Time end = clock.Now() + kBudget;
  for (int round = 0; round < kMostRounds && (round == 0 || clock.Now() < end); ++round) {
    time(1, length, few);
    time(sequences, length, many);
    time(1, tokens, longs);
  }
  return FitRates(few, many, longs);
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
                                                int64_t max_tokens, const ThreadPlan& plan,
                                                const Clock& clock) {
  auto model = std::make_shared<ServedModel>(loaded);
  model->runs = std::make_shared<std::vector<EncoderRun>>();
  model->retired = std::make_shared<std::atomic<bool>>(false);  // not shared with `loaded`
  for (int instance = 0; instance < plan.instances; ++instance) {
    OnNodeOf(instance, plan, [&] {
      EncoderRun& run = model->runs->emplace_back(model->copy(plan.CopyOf(instance)), max_tokens,
                                                  plan.threads_per_instance);
      if (instance == 0) {
        model->row_plan =
            base != nullptr ? base->row_plan : ChooseRowPlan(model->name, run, plan, clock);
      }
      run.SetRowPlan(model->row_plan);
      if (instance == 0) TimeCosts(*model, base, run, clock);
    });
  }
  return model;
}

ServedModels PrepareModels(const ServedModels& loaded, int64_t max_tokens, const ThreadPlan& plan,
                           const Clock& clock) {
  ServedModels prepared;
  for (const bool overlays : {false, true}) {
    for (const auto& [name, model] : loaded) {
      if (model->base.empty() == overlays) continue;
      const ServedModel* base = overlays ? prepared.at(model->base).get() : nullptr;
      prepared[name] = PrepareModel(*model, base, max_tokens, plan, clock);
    }
  }
  return prepared;
}

void TimeCosts(const ServedModel& model, const ServedModel* base, EncoderRun& run,
               const Clock& clock) {
  if (model.cost->has_rates()) return;
  const ModelDescription& description = model.encoder->description();
  const bool can_run = !description.layer.needs_cross_kv() && description.layers > 0;
  const CostRates rates = base != nullptr ? base->cost->rates()
                          : can_run       ? Measure(*model.cost, run, clock)
                                          : CostRates();
  model.cost->SetRates(rates);
  spdlog::info(
      "model {}: measured {:.3f} ms per layer of a batch, {:.1f} GFLOP/s in products and {:.1f} in "
      "attention",
      model.name, rates.seconds_per_layer * 1e3, rates.product_flops / 1e9,
      rates.attention_flops / 1e9);
}

}  // namespace attendant::server
