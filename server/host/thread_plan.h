// The thread plan of a server: the number of instances, their threads, and the NUMA nodes on which
// they run.
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
  int instances = 1;  // batches that are computed at the same time
  int threads_per_instance = 1;
  RowPolicy row_policy = RowPolicy::kTeam;

  // The NUMA nodes that instances are bound to. Each has its own copy of the weights. If this is
  // empty, no instance is bound, and all share one copy.
  std::vector<NumaNode> nodes = {};
  // For each instance, the index in `nodes` of its node and copy. Empty if `nodes` is.
  std::vector<int> copy_of_instance = {};

  // Number of copies of the weights.
  int copies() const { return nodes.empty() ? 1 : static_cast<int>(nodes.size()); }
  int CopyOf(int instance) const { return nodes.empty() ? 0 : copy_of_instance[instance]; }
};

// Returns the NUMA nodes of this machine that instances may be bound to; none with --numa off.
std::vector<NumaNode> NumaNodesOf(const Settings& settings);

// Plans what the settings ask for. A number that they leave at 0 is chosen from the CPU budget.
//
// With fewer than two nodes, the default is one instance with the whole budget: this finishes a
// batch soonest, and while it is computed the next batch grows.
//
// With several nodes, the default is one instance per node. All instances have the same number of
// threads: that of the CPUs of the smallest node used, or fewer if the budget is smaller. Larger
// nodes are used first, and no more nodes than it takes to use as much of the budget as possible.
// If the settings give one of the two numbers, the other is chosen so that, if possible, every
// instance finds a CPU for each of its threads on one node.
//
// Each instance is placed on the node with the most CPUs left; of several such nodes on the
// largest, and of equally large ones on the first in `nodes`. If an instance has more threads than
// any node has CPUs, no instance is bound.
ThreadPlan MakeThreadPlan(const Settings& settings, const CpuBudget& budget,
                          absl::Span<const NumaNode> nodes = {});

// Returns true if there are more compute threads than CPUs in the budget or on one of the nodes.
bool Oversubscribes(const ThreadPlan& plan, const CpuBudget& budget);

// Describes for the log on which node each instance runs. `nodes` are at least two, those that the
// plan was made for.
std::string DescribePlaces(const ThreadPlan& plan, absl::Span<const NumaNode> nodes);

}  // namespace attendant::server
