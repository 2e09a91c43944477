#include "server/host/thread_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace attendant::server {
namespace thread_plan_test {

using testing::IsEmpty;

Settings Given(int instances, int threads_per_instance) {
  Settings settings;
  settings.instances = instances;
  settings.threads_per_instance = threads_per_instance;
  return settings;
}

ThreadPlan Plan(int instances, int threads_per_instance, int budget) {
  return MakeThreadPlan(Given(instances, threads_per_instance), {budget, ""});
}

void ExpectPlan(const ThreadPlan& plan, int instances, int threads_per_instance) {
  EXPECT_EQ(plan.instances, instances);
  EXPECT_EQ(plan.threads_per_instance, threads_per_instance);
}

TEST(ThreadPlanTest, OneInstanceWithEverythingByDefault) { ExpectPlan(Plan(0, 0, 8), 1, 8); }

TEST(ThreadPlanTest, UnsetValuesDivideTheBudget) {
  ExpectPlan(Plan(2, 0, 8), 2, 4);
  ExpectPlan(Plan(0, 3, 8), 2, 3);
}

TEST(ThreadPlanTest, GivenValuesAreKept) { ExpectPlan(Plan(3, 5, 2), 3, 5); }

TEST(ThreadPlanTest, TakesTheRowPolicyOfTheSettings) {
  Settings settings;
  EXPECT_EQ(MakeThreadPlan(settings, {2, ""}).row_policy, RowPolicy::kTimed);
  settings.row_plan = RowPolicy::kRows;
  EXPECT_EQ(MakeThreadPlan(settings, {2, ""}).row_policy, RowPolicy::kRows);
}

TEST(ThreadPlanTest, NeverLessThanOneOfEach) {
  ExpectPlan(Plan(4, 0, 2), 4, 1);
  ExpectPlan(Plan(0, 4, 2), 1, 4);
}

// Makes nodes with these numbers of CPUs, which are numbered consecutively.
std::vector<NumaNode> Nodes(const std::vector<int>& sizes) {
  std::vector<NumaNode> nodes;
  int next = 0;
  for (const int size : sizes) {
    nodes.push_back({static_cast<int>(nodes.size()), CpuList(size)});
    std::iota(nodes.back().cpus.begin(), nodes.back().cpus.end(), next);
    next += size;
  }
  return nodes;
}

// Plans for such nodes. Without a quota, the budget is all their CPUs.
class NumaPlan {
 public:
  explicit NumaPlan(const std::vector<int>& sizes, int quota = 1 << 20)
      : nodes_(Nodes(sizes)),
        budget_{std::min(std::accumulate(sizes.begin(), sizes.end(), 0), quota), ""} {}

  ThreadPlan Make(int instances, int threads_per_instance) const {
    return MakeThreadPlan(Given(instances, threads_per_instance), budget_, nodes_);
  }
  // The plan and the node of each instance; no nodes if the instances are not bound.
  void Expect(const ThreadPlan& plan, int instances, int threads, std::vector<int> nodes) const {
    ExpectPlan(plan, instances, threads);
    EXPECT_EQ(NodesOf(plan), nodes);
  }
  std::string Describe(const ThreadPlan& plan) const { return DescribePlaces(plan, nodes_); }
  bool TooMany(const ThreadPlan& plan) const { return Oversubscribes(plan, budget_); }

 private:
  static std::vector<int> NodesOf(const ThreadPlan& plan) {
    std::vector<int> nodes;
    for (const int copy : plan.copy_of_instance) nodes.push_back(plan.nodes[copy].id);
    return nodes;
  }

  const std::vector<NumaNode> nodes_;
  const CpuBudget budget_;
};

TEST(NumaPlanTest, OneNodeChangesNothing) {
  const NumaPlan machine({8});
  machine.Expect(machine.Make(0, 0), 1, 8, {});
  machine.Expect(machine.Make(2, 0), 2, 4, {});
  EXPECT_EQ(machine.Make(0, 0).copies(), 1);
  EXPECT_EQ(machine.Make(2, 0).CopyOf(1), 0);
}

TEST(NumaPlanTest, ByDefaultAnInstanceOnEachNode) {
  const NumaPlan two({16, 16}), four({8, 8, 8, 8});
  two.Expect(two.Make(0, 0), 2, 16, {0, 1});
  four.Expect(four.Make(0, 0), 4, 8, {0, 1, 2, 3});
  EXPECT_EQ(four.Make(0, 0).copies(), 4);
}

TEST(NumaPlanTest, AQuotaUsesAsFewNodesAsHoldIt) {
  const NumaPlan most({16, 16}, 24), half({16, 16}, 16), few({16, 16}, 3), odd({8, 8, 8, 8}, 20);
  most.Expect(most.Make(0, 0), 2, 12, {0, 1});
  half.Expect(half.Make(0, 0), 1, 16, {0});
  few.Expect(few.Make(0, 0), 1, 3, {0});
  odd.Expect(odd.Make(0, 0), 4, 5, {0, 1, 2, 3});
}

TEST(NumaPlanTest, UnequalNodesAreUsedWhereThatUsesMoreCpus) {
  const NumaPlan nearly({12, 16}), hardly({2, 16});
  nearly.Expect(nearly.Make(0, 0), 2, 12, {1, 0});
  hardly.Expect(hardly.Make(0, 0), 1, 16, {1});
}

TEST(NumaPlanTest, SaidThreadsFillNodes) {
  const NumaPlan machine({16, 16});
  machine.Expect(machine.Make(0, 8), 4, 8, {0, 1, 0, 1});
  machine.Expect(machine.Make(0, 10), 2, 10, {0, 1});
  EXPECT_EQ(machine.Make(0, 8).copies(), 2);
  const NumaPlan quota({16, 16}, 17);
  quota.Expect(quota.Make(0, 8), 2, 8, {0, 1});
}

TEST(NumaPlanTest, SaidInstancesFindTheirCpusOnOneNode) {
  const NumaPlan machine({16, 16});
  machine.Expect(machine.Make(2, 0), 2, 16, {0, 1});
  machine.Expect(machine.Make(3, 0), 3, 8, {0, 1, 0});
  machine.Expect(machine.Make(40, 0), 40, 1, machine.Make(40, 1).copy_of_instance);
}

TEST(NumaPlanTest, InstancesLargerThanANodeSpan) {
  const NumaPlan machine({16, 16});
  machine.Expect(machine.Make(1, 0), 1, 32, {});
  machine.Expect(machine.Make(0, 20), 1, 20, {});
  machine.Expect(machine.Make(2, 17), 2, 17, {});
  EXPECT_EQ(machine.Describe(machine.Make(1, 0)),
            "2 NUMA nodes; none has CPUs for 32 threads, so instances span them, with one copy of "
            "the weights");
}

TEST(NumaPlanTest, GivenValuesAreKept) {
  const NumaPlan machine({4, 4});
  machine.Expect(machine.Make(1, 2), 1, 2, {0});
  machine.Expect(machine.Make(3, 3), 3, 3, {0, 1, 0});
}

TEST(NumaPlanTest, TellsWhereInstancesAre) {
  const NumaPlan machine({4, 4});
  EXPECT_EQ(machine.Describe(machine.Make(0, 0)),
            "2 NUMA nodes; instance 0 on node 0 (CPUs 0-3, 4 threads); instance 1 on node 1 (CPUs "
            "4-7, 4 threads); copies of the weights: 2");
}

TEST(NumaPlanTest, KnowsMoreThreadsThanCpus) {
  const NumaPlan machine({4, 4});
  EXPECT_FALSE(machine.TooMany(machine.Make(0, 0)));
  EXPECT_FALSE(machine.TooMany(machine.Make(1, 0)));
  EXPECT_TRUE(machine.TooMany(machine.Make(3, 4)));
  EXPECT_TRUE(machine.TooMany(machine.Make(2, 5)));
  const NumaPlan unequal({6, 2});  // 2 x 4 = 8, but on one node
  EXPECT_TRUE(unequal.TooMany(unequal.Make(2, 4)));
}

TEST(NumaPlanTest, OffSeesNoNodes) {
  Settings settings;
  settings.numa = NumaPolicy::kOff;
  EXPECT_THAT(NumaNodesOf(settings), IsEmpty());
  settings.numa = NumaPolicy::kAuto;
  EXPECT_GE(NumaNodesOf(settings).size(), 1u);
}

}  // namespace thread_plan_test
}  // namespace attendant::server
