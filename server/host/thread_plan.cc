#include "server/host/thread_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace attendant::server {
namespace {

int Cpus(const NumaNode& node) { return static_cast<int>(node.cpus.size()); }

ThreadPlan DivideBudget(const Settings& settings, const CpuBudget& budget) {
  ThreadPlan plan;
  plan.instances = settings.instances;
  plan.threads_per_instance = settings.threads_per_instance;
  plan.row_policy = settings.row_plan;
  if (plan.instances == 0) {
    plan.instances = plan.threads_per_instance == 0
                         ? 1
                         : std::max(budget.threads / plan.threads_per_instance, 1);
  }
  if (plan.threads_per_instance == 0) {
    plan.threads_per_instance = std::max(budget.threads / plan.instances, 1);
  }
  return plan;
}

// Plans one instance on each of the first few nodes. A further node is used only if more of the
// budget is used with it, because with fewer instances a batch is done sooner, and there are fewer
// copies of the weights.
void SpreadOver(absl::Span<const NumaNode> nodes, const CpuBudget& budget, ThreadPlan& plan) {
  int most = 0;
  for (int used = 1; used <= static_cast<int>(nodes.size()); ++used) {
    const int threads = std::min(Cpus(nodes[used - 1]), budget.threads / used);
    if (used * threads <= most) continue;
    most = used * threads;
    plan.instances = used;
    plan.threads_per_instance = threads;
  }
}

// Returns how many instances with `threads` threads each fit on the nodes, if every instance runs
// on one node and every thread has a CPU of its own.
int Room(absl::Span<const NumaNode> nodes, int threads) {
  int instances = 0;
  for (const NumaNode& node : nodes) instances += Cpus(node) / threads;
  return instances;
}

void Place(absl::Span<const NumaNode> nodes, ThreadPlan& plan) {
  std::vector<int> left, copy(nodes.size(), -1);
  for (const NumaNode& node : nodes) left.push_back(Cpus(node));
  for (int i = 0; i < plan.instances; ++i) {
    const auto node = std::max_element(left.begin(), left.end()) - left.begin();
    left[node] -= plan.threads_per_instance;
    if (copy[node] < 0) {
      copy[node] = static_cast<int>(plan.nodes.size());
      plan.nodes.push_back(nodes[node]);
    }
    plan.copy_of_instance.push_back(copy[node]);
  }
}

}  // namespace

std::vector<NumaNode> NumaNodesOf(const Settings& settings) {
  if (settings.numa == NumaPolicy::kOff) return {};
  return FindNumaNodes(AllowedCpus());
}

ThreadPlan MakeThreadPlan(const Settings& settings, const CpuBudget& budget,
                          absl::Span<const NumaNode> nodes) {
  ThreadPlan plan = DivideBudget(settings, budget);
  if (nodes.size() < 2) return plan;
  std::vector<NumaNode> largest_first(nodes.begin(), nodes.end());
  std::stable_sort(largest_first.begin(), largest_first.end(),
                   [](const NumaNode& a, const NumaNode& b) { return Cpus(a) > Cpus(b); });
  const bool choose_instances = settings.instances == 0;
  const bool choose_threads = settings.threads_per_instance == 0;
  if (choose_instances && choose_threads) SpreadOver(largest_first, budget, plan);
  int& threads = plan.threads_per_instance;
  if (threads > Cpus(largest_first.front())) return plan;
  if (choose_instances) plan.instances = std::min(plan.instances, Room(nodes, threads));
  if (choose_threads) {
    while (threads > 1 && Room(nodes, threads) < plan.instances) --threads;
  }
  Place(largest_first, plan);
  return plan;
}

bool Oversubscribes(const ThreadPlan& plan, const CpuBudget& budget) {
  std::vector<int> left;
  for (const NumaNode& node : plan.nodes) left.push_back(Cpus(node));
  for (const int copy : plan.copy_of_instance) left[copy] -= plan.threads_per_instance;
  return plan.instances * plan.threads_per_instance > budget.threads ||
         std::any_of(left.begin(), left.end(), [](int cpus) { return cpus < 0; });
}

std::string DescribePlaces(const ThreadPlan& plan, absl::Span<const NumaNode> nodes) {
  std::string text = absl::StrCat(nodes.size(), " NUMA nodes");
  if (plan.nodes.empty()) {
    return absl::StrCat(text, "; none has CPUs for ", plan.threads_per_instance,
                        " threads, so instances span them, with one copy of the weights");
  }
  for (int i = 0; i < plan.instances; ++i) {
    const NumaNode& node = plan.nodes[plan.CopyOf(i)];
    absl::StrAppend(&text, "; instance ", i, " on node ", node.id, " (CPUs ", ToString(node.cpus),
                    ", ", plan.threads_per_instance, " threads)");
  }
  return absl::StrCat(text, "; copies of the weights: ", plan.copies());
}

}  // namespace attendant::server
