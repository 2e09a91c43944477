#include "engine/base/cpu_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>

namespace attendant {
namespace {

using testing::HasSubstr;

class CpuBudgetTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(testing::TempDir()) /
            testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(root_ / "cpu");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void Write(const std::string& file, const std::string& text) {
    std::ofstream(root_ / file) << text;
  }
  int Allowed() {
    cpu_set_t set;
    sched_getaffinity(0, sizeof(set), &set);
    return CPU_COUNT(&set);
  }

  std::filesystem::path root_;
};

TEST_F(CpuBudgetTest, WithoutQuotaTakesWhatAffinityAllows) {
  const CpuBudget budget = MeasureCpuBudget(root_);
  EXPECT_EQ(budget.threads, Allowed());
  EXPECT_THAT(budget.reason, HasSubstr("no cgroup quota"));
}

TEST_F(CpuBudgetTest, UnlimitedQuotaIsNone) {
  Write("cpu.max", "max 100000\n");
  EXPECT_EQ(MeasureCpuBudget(root_).threads, Allowed());
}

TEST_F(CpuBudgetTest, QuotaRoundsUpToAWholeCpu) {
  Write("cpu.max", "50000 100000\n");
  const CpuBudget budget = MeasureCpuBudget(root_);
  EXPECT_EQ(budget.threads, 1);
  EXPECT_THAT(budget.reason, HasSubstr("cgroup quota 0.50"));
}

TEST_F(CpuBudgetTest, ReadsTheFirstVersionToo) {
  Write("cpu/cpu.cfs_quota_us", "100000\n");
  Write("cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(MeasureCpuBudget(root_).threads, 1);
}

TEST_F(CpuBudgetTest, AQuotaAboveTheCpusAddsNone) {
  Write("cpu.max", "100000000 100000\n");
  EXPECT_EQ(MeasureCpuBudget(root_).threads, Allowed());
}

TEST_F(CpuBudgetTest, NonsenseCountsAsNoQuota) {
  Write("cpu.max", "lots 0\n");
  EXPECT_EQ(MeasureCpuBudget(root_).threads, Allowed());
}

TEST_F(CpuBudgetTest, AffinityOfOneGivesOneThread) {
  cpu_set_t before, one;
  sched_getaffinity(0, sizeof(before), &before);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &before)) {
      CPU_SET(cpu, &one);
      break;
    }
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(MeasureCpuBudget(root_).threads, 1);
  sched_setaffinity(0, sizeof(before), &before);
}

}  // namespace
}  // namespace attendant
