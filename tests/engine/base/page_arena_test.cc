#include "engine/base/page_arena.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>

namespace attendant {
namespace page_arena_test {

TEST(PageArena, BlocksAreAlignedAndDoNotOverlap) {
  PageArena arena;
  const std::shared_ptr<char> first = arena.Allocate(100), second = arena.Allocate(1);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first.get()) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(second.get()) % 64, 0u);
  EXPECT_GE(second.get() - first.get(), 100);
}

TEST(PageArena, CopiesShareTheirChunks) {
  PageArena arena, copy = arena;
  const std::shared_ptr<char> first = arena.Allocate(64), second = copy.Allocate(64),
                              third = arena.Allocate(64);
  EXPECT_EQ(second.get() - first.get(), 64);
  EXPECT_EQ(third.get() - second.get(), 64);
}

TEST(PageArena, BlocksOutliveTheArena) {
  std::shared_ptr<char> block = PageArena().Allocate(1 << 20);
  std::memset(block.get(), 7, 1 << 20);
  EXPECT_EQ(block.get()[(1 << 20) - 1], 7);
}

TEST(PageArena, GivesABlockThatIsLargerThanAChunk) {
  constexpr int64_t kBytes = int64_t{50} << 20;
  PageArena arena;
  arena.Allocate(1);
  const std::shared_ptr<char> block = arena.Allocate(kBytes);
  block.get()[0] = block.get()[kBytes - 1] = 3;
  EXPECT_EQ(block.get()[kBytes - 1], 3);
  // Chunks begin at a huge page.
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block.get()) % (2 << 20), 0u);
}

TEST(PageArena, GivesNothingAsABlockToo) { EXPECT_NE(PageArena().Allocate(0), nullptr); }

}  // namespace page_arena_test
}  // namespace attendant
