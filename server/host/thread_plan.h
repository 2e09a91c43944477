// How many instances, threads in each, and where they run.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "engine/base/cpu_budget.h"
#include "engine/base/numa_topology.h"
#include "engine/layers/state/row_plan.h"
#include "server/settings/settings.h"

namespace attendant::server {

struct ThreadPlan {
  int instances = 1;
  int threads_per_instance = 1;
  RowPolicy row_policy = RowPolicy::kTeam;

  // The NUMA nodes that instances are bound to, each of which has a copy of the weights. Empty: no
  // instance is bound, and one copy serves all.
  std::vector<NumaNode> nodes = {};
  std::vector<int> copy_of_instance = {};  // its place in `nodes`

  int copies() const { return nodes.empty() ? 1 : static_cast<int>(nodes.size()); }
  int CopyOf(int instance) const { return nodes.empty() ? 0 : copy_of_instance[instance]; }
};

// Those of this machine that instances may be bound to; of --numa off: none.
std::vector<NumaNode> NumaNodesOf(const Settings& settings);

// What the settings say; what they leave at 0 divides the budget.
//
// With fewer than two nodes, by default one instance with all of it: a batch is then done soonest,
// and batches grow meanwhile.
//
// With several, by default one instance on each, of as many threads as the smallest has CPUs; on so
// few of the largest nodes as use most of the budget. What the settings leave open is chosen so
// that every instance finds its CPUs on one node. Each goes to the node with the most CPUs left, of
// equal ones to the first of `nodes`. Instances of more threads than any node has CPUs are not
// bound.
ThreadPlan MakeThreadPlan(const Settings& settings, const CpuBudget& budget,
                          absl::Span<const NumaNode> nodes = {});

// More threads than CPUs, in all or on a node.
bool Oversubscribes(const ThreadPlan& plan, const CpuBudget& budget);

// For the log: where the instances of the plan for these nodes, at least two, are.
std::string DescribePlaces(const ThreadPlan& plan, absl::Span<const NumaNode> nodes);

}  // namespace attendant::server
