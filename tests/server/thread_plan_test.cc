#include "server/thread_plan.h"

#include "gtest/gtest.h"

namespace attendant::server {
namespace {

ThreadPlan Plan(int instances, int threads_per_instance, int budget) {
  Settings settings;
  settings.instances = instances;
  settings.threads_per_instance = threads_per_instance;
  return MakeThreadPlan(settings, {budget, ""});
}

void ExpectPlan(const ThreadPlan& plan, int instances, int threads_per_instance) {
  EXPECT_EQ(plan.instances, instances);
  EXPECT_EQ(plan.threads_per_instance, threads_per_instance);
}

TEST(ThreadPlanTest, OneInstanceWithEverythingByDefault) { ExpectPlan(Plan(0, 0, 8), 1, 8); }

TEST(ThreadPlanTest, WhatIsNotSaidDividesTheBudget) {
  ExpectPlan(Plan(2, 0, 8), 2, 4);
  ExpectPlan(Plan(0, 3, 8), 2, 3);
}

TEST(ThreadPlanTest, WhatIsSaidCounts) { ExpectPlan(Plan(3, 5, 2), 3, 5); }

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

}  // namespace
}  // namespace attendant::server
