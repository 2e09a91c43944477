#include "engine/kernels/gemm/packed_weight.h"

#include <vector>

#include "gmock/gmock.h"

namespace attendant {
namespace packed_weight_test {

using testing::ElementsAre;

TEST(ChooseKBlockTest, TakesTheFirstCleanOne) {
  std::vector<int64_t> tried;
  const auto clean_below_400 = [&](int64_t block) {
    tried.push_back(block);
    return block < 400;
  };
  EXPECT_EQ(ChooseKBlock({1536, 768, 384, 128}, clean_below_400), 384);
  EXPECT_THAT(tried, ElementsAre(1536, 768, 384));
}

TEST(ChooseKBlockTest, FallsBackToTheFirst) {
  const auto none = [](int64_t) { return false; };
  EXPECT_EQ(ChooseKBlock({1536, 768}, none), 1536);
  EXPECT_EQ(ChooseKBlock({50}, none), 50);
}

}  // namespace packed_weight_test
}  // namespace attendant
