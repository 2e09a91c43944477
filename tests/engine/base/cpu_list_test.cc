#include "engine/base/cpu_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "engine/base/thread_team.h"

namespace attendant {
namespace cpu_list_test {

using testing::Each;
using testing::HasSubstr;

TEST(CpuListTest, ReadsTheKernelsNotation) {
  EXPECT_EQ(ParseCpuList("0"), CpuList{0});
  EXPECT_EQ(ParseCpuList("0-3,8,10-11\n"), (CpuList{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(ParseCpuList("\n"), CpuList{});
  EXPECT_EQ(ParseCpuList("5000-5001"), (CpuList{5000, 5001}));
}

TEST(CpuListTest, RefusesWhatIsNoList) {
  for (const char* text :
       {"x", "1-", "-1", "3-1", "1,1", "2,1", "1-2-3", "0,,1", "0-70000", "1;2", "0-99999999999"}) {
    EXPECT_EQ(ParseCpuList(text), std::nullopt) << text;
  }
}

TEST(CpuListTest, IsWrittenAsItIsRead) {
  for (const char* text : {"", "0", "0-3,8,10-11", "1,3"}) {
    EXPECT_EQ(ToString(*ParseCpuList(text)), text);
  }
}

TEST(CpuListTest, BoundThreadsAndThoseTheyStartStayWhereTheyAre) {
  const CpuList before = AllowedCpus();
  const CpuList last = {before.back()};
  std::thread([&] {
    ASSERT_TRUE(BindThread(last).ok());
    EXPECT_EQ(AllowedCpus(), last);
    absl::Mutex mutex;
    std::vector<CpuList> seen;
    ThreadTeam(3).ParallelFor(64, [&](int, int64_t) {
      const CpuList mine = AllowedCpus();
      absl::MutexLock lock(&mutex);
      seen.push_back(mine);
    });
    EXPECT_THAT(seen, Each(last));
  }).join();
  EXPECT_EQ(AllowedCpus(), before);
}

TEST(CpuListTest, NamesTheCpusThatAreNotThere) {
  const CpuList before = AllowedCpus();
  const absl::Status status = BindThread({60000, 60001});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("cannot bind a thread to CPUs 60000-60001: Invalid argument"));
  EXPECT_FALSE(BindThread({}).ok());
  EXPECT_EQ(AllowedCpus(), before);
}

}  // namespace cpu_list_test
}  // namespace attendant
