#include "server/host/freed_memory.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/synchronization/barrier.h"
#include "server/host/node_binding.h"
#include "server/metrics/process_figures.h"

namespace attendant::server {
namespace freed_memory_test {

constexpr int64_t kMiB = int64_t{1} << 20;

// A process whose memory is what the test says, and of which some can be given back.
class FreedMemoryTest : public testing::Test {
 protected:
  void Look(int64_t resident, bool busy = false) {
    resident_ = resident;
    memory_.GiveBackIfGrown({.under_way = busy ? 1 : 0, .begun = begun_});
  }

  int64_t resident_ = 0;
  int64_t in_use_ = 100 * kMiB;
  int64_t begun_ = 0;
  int times_ = 0;
  FreedMemory memory_{[this] { return resident_; },
                      [this] {
                        ++times_;
                        resident_ = in_use_;
                      }};
};

TEST_F(FreedMemoryTest, IsGivenBackWhenTheProcessHasGrown) {
  Look(100 * kMiB);
  EXPECT_EQ(times_, 1);
  Look(100 * kMiB + kMiB / 32);
  EXPECT_EQ(times_, 1);
  Look(101 * kMiB);
  EXPECT_EQ(times_, 2);
}

// Connections are closed after the calls on them have ended.
TEST_F(FreedMemoryTest, IsGivenBackUntilNothingIsLeftToGive) {
  Look(110 * kMiB);
  EXPECT_EQ(times_, 1);
  in_use_ = 98 * kMiB;
  Look(100 * kMiB);
  EXPECT_EQ(times_, 2);
  Look(98 * kMiB);
  EXPECT_EQ(times_, 3);
  Look(98 * kMiB);
  EXPECT_EQ(times_, 3);
}

TEST_F(FreedMemoryTest, ABusyProcessKeepsMore) {
  Look(110 * kMiB);
  Look(131 * kMiB, /*busy=*/true);
  EXPECT_EQ(times_, 1);
  Look(132 * kMiB, /*busy=*/true);
  EXPECT_EQ(times_, 2);
}

TEST_F(FreedMemoryTest, WhatABusyProcessKeptIsGivenBackWhenItIsIdle) {
  Look(100 * kMiB);
  in_use_ = 140 * kMiB;
  Look(150 * kMiB, /*busy=*/true);
  EXPECT_EQ(times_, 2);
  Look(140 * kMiB, /*busy=*/true);
  EXPECT_EQ(times_, 2);
  in_use_ = 100 * kMiB;
  Look(140 * kMiB);
  EXPECT_EQ(times_, 3);
}

// At some moments no call of a busy process is under way: what they hold between them is not what
// an idle process keeps.
TEST_F(FreedMemoryTest, WhatIsHeldBetweenCallsIsGivenBackOnceNoneBegins) {
  Look(100 * kMiB);
  begun_ = 50;
  in_use_ = 110 * kMiB;
  Look(110 * kMiB);
  EXPECT_EQ(times_, 2);
  begun_ = 60;
  in_use_ = 100 * kMiB;
  Look(110 * kMiB);
  EXPECT_EQ(times_, 3);
  EXPECT_EQ(resident_, 100 * kMiB);
}

TEST_F(FreedMemoryTest, WhatIsInUseIsNotTriedAgain) {
  in_use_ = 500 * kMiB;
  Look(500 * kMiB);
  Look(500 * kMiB);
  EXPECT_EQ(times_, 1);
}

TEST_F(FreedMemoryTest, IsGivenBackInAnyCaseIfThatIsAskedFor) {
  Look(100 * kMiB);
  in_use_ = 90 * kMiB;
  memory_.GiveBack();
  EXPECT_EQ(times_, 2);
  Look(90 * kMiB + kMiB / 32, /*busy=*/true);
  EXPECT_EQ(times_, 2);
}

TEST_F(FreedMemoryTest, GrowthCountsFromTheLeastThatWasSeen) {
  Look(100 * kMiB);
  Look(50 * kMiB);
  Look(60 * kMiB);
  EXPECT_EQ(times_, 2);
}

// The sanitizers have heaps of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(FreedMemoryOfTheProcessTest, LeavesIt) {
  std::unique_ptr<std::string> pin;
  std::thread([&] {
    std::vector<std::string> blocks(32'000, std::string(2000, 'x'));
    pin = std::make_unique<std::string>(2000, 'x');  // above them in this thread's heap
  }).join();
  const int64_t before = ResidentBytes();
  FreedMemory(ResidentBytes).GiveBackIfGrown({});
  EXPECT_LT(ResidentBytes(), before - 50'000'000);
}

int64_t CountHeaps() {
  char* text = nullptr;
  size_t size = 0;
  FILE* const stream = open_memstream(&text, &size);
  malloc_info(0, stream);
  std::fclose(stream);
  const std::vector<std::string> parts = absl::StrSplit(text, "<heap nr=");
  std::free(text);
  return static_cast<int64_t>(parts.size()) - 1;
}

TEST(LimitHeapsTest, ManyThreadsShareThem) {
  const int64_t processors = std::thread::hardware_concurrency();
  const int64_t most = std::max({CountHeaps(), processors / 2, int64_t{1}});
  LimitHeaps();
  constexpr int kThreads = 64;
  absl::Barrier* const all_hold_memory = new absl::Barrier(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const std::string held(2000, 'x');
      if (all_hold_memory->Block()) delete all_hold_memory;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(CountHeaps(), most);
}

void ExpectAHeapGivesBackItsEnd() {
  std::thread([] {  // with four processors or more it has another heap than the first
    // By default its end may then be twice as large.
    std::string(30'000'000, 'x').clear();
    std::vector<std::string> blocks(400, std::string(100'000, 'x'));
    const int64_t before = ResidentBytes();
    blocks = {};
    EXPECT_LT(ResidentBytes(), before - 30'000'000);
  })
      .join();
}

TEST(LimitHeapsTest, AHeapGivesBackItsEnd) {
  LimitHeaps();
  ExpectAHeapGivesBackItsEnd();
}

// With several nodes, weights are loaded into fresh pages.
TEST(LimitHeapsTest, AHeapGivesBackItsEndAfterFreshPages) {
  LimitHeaps();
  { const FreshPages fresh_pages; }
  ExpectAHeapGivesBackItsEnd();
  const size_t mapped = mallinfo2().hblks;
  const std::string block(1 << 20, 'x');
  EXPECT_EQ(mallinfo2().hblks, mapped) << "the block has pages of its own";
}
#endif

}  // namespace freed_memory_test
}  // namespace attendant::server
