#include "engine/base/aligned_buffer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

namespace attendant {
namespace aligned_buffer_test {

TEST(AlignedBuffer, StartsAtACacheLine) {
  for (int64_t size : {1, 7, 64, 1001}) {
    AlignedBuffer<float> buffer(size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u);
    EXPECT_EQ(buffer.size(), size);
    EXPECT_EQ(buffer.bytes(), size * 4);
  }
}

TEST(AlignedBuffer, EmptyIsLegal) { EXPECT_EQ(AlignedBuffer<float>(0).size(), 0); }

TEST(AlignedBuffer, MovesItsMemory) {
  AlignedBuffer<int> first(3);
  first[2] = 5;
  const int* memory = first.data();
  const AlignedBuffer<int> second = std::move(first);
  EXPECT_EQ(second.data(), memory);
  EXPECT_EQ(second[2], 5);
}

TEST(AlignedBuffer, GrowsToWhatIsAskedForAndNeverShrinks) {
  AlignedBuffer<float> buffer;
  buffer.GrowTo(5);
  EXPECT_EQ(buffer.size(), 5);
  buffer[4] = 1;
  const float* memory = buffer.data();
  buffer.GrowTo(3);
  EXPECT_EQ(buffer.size(), 5);
  EXPECT_EQ(buffer.data(), memory);
  EXPECT_EQ(buffer[4], 1);
  buffer.GrowTo(6);
  EXPECT_EQ(buffer.size(), 6);
}

}  // namespace aligned_buffer_test
}  // namespace attendant
