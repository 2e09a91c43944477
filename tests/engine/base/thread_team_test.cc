#include "engine/base/thread_team.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <limits>
#include <new>
#include <thread>
#include <vector>

namespace attendant {
namespace thread_team_test {

class ThreadTeamOfSize : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, ThreadTeamOfSize, testing::Values(1, 2, 3, 8));

TEST_P(ThreadTeamOfSize, RunsEveryItemOnce) {
  const ThreadTeam team(GetParam());
  for (int64_t items : {0, 1, 2, 7, 1000}) {
    std::vector<int> runs(items, 0);
    team.ParallelFor(items, [&](int worker, int64_t item) {
      EXPECT_GE(worker, 0);
      EXPECT_LT(worker, team.size());
      ++runs[item];
    });
    EXPECT_EQ(runs, std::vector<int>(items, 1));
  }
}

TEST_P(ThreadTeamOfSize, ThrowsWhatABodyThrows) {
  const ThreadTeam team(GetParam());
  for (int64_t items : {1, 2, 1000}) {
    EXPECT_THROW(team.ParallelFor(items,
                                  [&](int, int64_t item) {
                                    if (item == items - 1) throw std::bad_alloc();
                                  }),
                 std::bad_alloc);
  }
  std::atomic<int> runs = 0;
  team.ParallelFor(1000, [&](int, int64_t) { ++runs; });
  EXPECT_EQ(runs, 1000);
}

TEST_P(ThreadTeamOfSize, RunsEveryItemOfEveryShareOnce) {
  const ThreadTeam team(GetParam());
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{0}, {1}, {0, 1}, {7}, {5, 0, 1}, {400, 3, 20, 1}}) {
    const auto items = [&](int share) { return sizes[share % sizes.size()]; };
    std::vector<std::vector<int>> runs(team.size()), once(team.size());
    for (int share = 0; share < team.size(); ++share) {
      runs[share].resize(items(share), 0);
      once[share].resize(items(share), 1);
    }
    for (int repeat = 0; repeat < 3; ++repeat) {
      for (std::vector<int>& of_share : runs) std::fill(of_share.begin(), of_share.end(), 0);
      team.ParallelForShares(items, [&](int worker, int share, int64_t item) {
        EXPECT_GE(worker, 0);
        EXPECT_LT(worker, team.size());
        ++runs[share][item];
      });
      EXPECT_EQ(runs, once);
    }
  }
}

// No thread goes on before all have begun.
TEST_P(ThreadTeamOfSize, WorkersBeginWithTheirOwnShare) {
  const ThreadTeam team(GetParam());
  std::latch begun(team.size());
  std::vector<int> first_share(team.size(), -1);
  team.ParallelForShares([](int) { return 4; },
                         [&](int worker, int share, int64_t item) {
                           if (first_share[worker] >= 0) return;
                           first_share[worker] = share;
                           EXPECT_EQ(item, 0);
                           begun.arrive_and_wait();
                         });
  for (int worker = 0; worker < team.size(); ++worker) EXPECT_EQ(first_share[worker], worker);
}

// A worker that is held back would wait forever for items of its own share that no other thread
// took.
TEST(ThreadTeam, OthersDoWhatAWorkerThatIsHeldBackLeaves) {
  for (const int size : {2, 3, 4}) {
    constexpr int64_t kItems = 5;
    const ThreadTeam team(size);
    for (int held_back = 0; held_back < size; ++held_back) {
      std::latch others(static_cast<int>(size * kItems - 1));
      team.ParallelForShares([](int) { return kItems; },
                             [&](int, int share, int64_t item) {
                               if (share == held_back && item == 0) return others.wait();
                               others.count_down();
                             });
    }
  }
}

TEST_P(ThreadTeamOfSize, LibrariesSeeOneThreadInside) {
  ThreadTeam(GetParam()).ParallelFor(4, [](int, int64_t) { EXPECT_EQ(omp_get_max_threads(), 1); });
}

TEST_P(ThreadTeamOfSize, FlushesDenormals) {
  volatile float smallest_normal = std::numeric_limits<float>::min();
  ThreadTeam(GetParam()).ParallelFor(4, [&](int, int64_t) {
    volatile float half = smallest_normal * 0.5f;
    EXPECT_EQ(half, 0.0f);
  });
  ThreadTeam(GetParam())
      .ParallelForShares([](int) { return 2; },
                         [&](int, int, int64_t) {
                           volatile float half = smallest_normal * 0.5f;
                           EXPECT_EQ(half, 0.0f);
                         });
  volatile float half = smallest_normal * 0.5f;
  EXPECT_GT(half, 0.0f) << "the caller's own arithmetic is left alone";
}

TEST(ThreadTeam, TwoTeamsRunSideBySide) {
  const auto sum = [] {
    int64_t total = 0;
    for (int repeat = 0; repeat < 100; ++repeat) {
      std::vector<int64_t> squares(64);
      ThreadTeam(2).ParallelFor(64, [&](int, int64_t item) { squares[item] = item * item; });
      for (int64_t square : squares) total += square;
    }
    EXPECT_EQ(total, 100 * 85344);
  };
  std::thread other(sum);
  sum();
  other.join();
}

}  // namespace thread_team_test
}  // namespace attendant
