// The thread plan of a server: its instances, their threads and their NUMA nodes.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "engine/base/cpu_budget.h"
#include "engine/layers/state/row_plan.h"
#include "server/host/numa_topology.h"
#include "server/settings/settings.h"

namespace attendant::server {

struct ThreadPlan {
  int instances = 1;  // batches computed at the same time
  int threads_per_instance = 1;
  RowPolicy row_policy = RowPolicy::kTeam;

  // NUMA nodes to which instances are bound, each with its own copy of the weights. If empty, no
  // instance is bound, and all share one copy.
  std::vector<NumaNode> nodes = {};
  // For each instance, the index in `nodes` of its node and copy. Empty if `nodes` is.
  std::vector<int> copy_of_instance = {};

  // Number of copies of the weights.
  int copies() const { return nodes.empty() ? 1 : static_cast<int>(nodes.size()); }
  int CopyOf(int instance) const { return nodes.empty() ? 0 : copy_of_instance[instance]; }
};

// Returns the NUMA nodes of this machine to which instances may be bound; none with --numa off.
std::vector<NumaNode> NumaNodesOf(const Settings& settings);

// Plans according to the settings. Values of 0 are chosen from the CPU budget.
//
// With fewer than two nodes, the default is one instance with the whole budget: it finishes a batch
// soonest, while the next batch grows.
//
// With several nodes, the default is one instance per node. All instances have the same number of
// threads: the CPUs of the smallest node used, or fewer if the budget is smaller. Larger nodes are
// used first, and only as many as needed to use as much of the budget as possible. If the settings
// give one of the two numbers, the other is chosen so that, if possible, each of an instance's
// threads has a CPU on one node.
//
// Each instance is placed on the node with the most free CPUs; of several, on the largest, then on
// the first in `nodes`. If an instance has more threads than any node has CPUs, no instance is
// bound.
ThreadPlan MakeThreadPlan(const Settings& settings, const CpuBudget& budget,
                          absl::Span<const NumaNode> nodes = {});

// Returns true if there are more compute threads than CPUs in the budget or on one of the nodes.
bool Oversubscribes(const ThreadPlan& plan, const CpuBudget& budget);

// Describes the node of each instance for the log. `nodes` are the two or more nodes of the plan.
std::string DescribePlaces(const ThreadPlan& plan, absl::Span<const NumaNode> nodes);

}  // namespace attendant::server
