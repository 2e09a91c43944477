#include "engine/base/cpu_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>

namespace attendant {
namespace cpu_budget_test {

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

  CpuBudget Measure() const { return MeasureCpuBudget({root_, root_ / "membership"}); }

  std::filesystem::path root_;
};

TEST_F(CpuBudgetTest, WithoutQuotaTakesWhatAffinityAllows) {
  const CpuBudget budget = Measure();
  EXPECT_EQ(budget.threads, Allowed());
  EXPECT_THAT(budget.reason, HasSubstr("no cgroup quota"));
}

TEST_F(CpuBudgetTest, UnlimitedQuotaIsNone) {
  Write("cpu.max", "max 100000\n");
  EXPECT_EQ(Measure().threads, Allowed());
}

TEST_F(CpuBudgetTest, QuotaRoundsUpToAWholeCpu) {
  Write("cpu.max", "50000 100000\n");
  const CpuBudget budget = Measure();
  EXPECT_EQ(budget.threads, 1);
  EXPECT_THAT(budget.reason, HasSubstr("cgroup quota 0.50"));
}

TEST_F(CpuBudgetTest, ReadsTheFirstVersionToo) {
  Write("cpu/cpu.cfs_quota_us", "100000\n");
  Write("cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Measure().threads, 1);
}

// The quota of a systemd unit (CPUQuota), or of a container that shares the host's view of cgroups.
TEST_F(CpuBudgetTest, TakesTheLeastQuotaOfTheGroupsAroundTheProcess) {
  Write("membership", "0::/system.slice/attendant.service\n");
  std::filesystem::create_directories(root_ / "system.slice/attendant.service");
  Write("system.slice/attendant.service/cpu.max", "max 100000\n");
  EXPECT_EQ(Measure().threads, Allowed());
  Write("system.slice/cpu.max", "70000 100000\n");
  EXPECT_THAT(Measure().reason, HasSubstr("cgroup quota 0.70"));
  Write("system.slice/attendant.service/cpu.max", "30000 100000\n");
  EXPECT_THAT(Measure().reason, HasSubstr("cgroup quota 0.30"));
}

TEST_F(CpuBudgetTest, TakesTheGroupOfItsControllerInTheFirstVersion) {
  Write("membership", "5:memory:/other\n4:cpu,cpuacct:/docker/0a1b\n0::/unified\n");
  std::filesystem::create_directories(root_ / "cpu/docker/0a1b");
  Write("cpu/docker/0a1b/cpu.cfs_quota_us", "60000\n");
  Write("cpu/docker/0a1b/cpu.cfs_period_us", "100000\n");
  EXPECT_THAT(Measure().reason, HasSubstr("cgroup quota 0.60"));
}

TEST_F(CpuBudgetTest, LooksNowhereBeyondTheRoot) {
  std::filesystem::create_directories(root_ / "inner");
  Write("cpu.max", "10000 100000\n");
  Write("membership", "0::/../..\nnonsense\n");
  EXPECT_THAT(MeasureCpuBudget({root_ / "inner", root_ / "membership"}).reason,
              HasSubstr("no cgroup quota"));
}

TEST_F(CpuBudgetTest, AQuotaAboveTheCpusAddsNone) {
  Write("cpu.max", "100000000 100000\n");
  EXPECT_EQ(Measure().threads, Allowed());
}

TEST_F(CpuBudgetTest, NonsenseCountsAsNoQuota) {
  Write("cpu.max", "lots 0\n");
  EXPECT_EQ(Measure().threads, Allowed());
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
  EXPECT_EQ(Measure().threads, 1);
  sched_setaffinity(0, sizeof(before), &before);
}

}  // namespace cpu_budget_test
}  // namespace attendant
