#include "server/models/product_plans.h"

#include <gtest/gtest.h>

#include <vector>

namespace attendant::server {
namespace product_plans_test {

using Plans = std::vector<ProductPlan>;

ProductPlan OneDnns(int64_t in, int64_t out, int64_t k_block, double speedup = 0) {
  return {.in = in,
          .out = out,
          .k_block = k_block,
          .tile_rows = {256, 64, 16},
          .implementations = {"brg:avx512_core"},
          .gemm = Gemm::kOneDnn,
          .tiles_speedup = speedup};
}

ProductPlan Own(int64_t in, int64_t out, double speedup) {
  return {.in = in,
          .out = out,
          .k_block = in,
          .tile_rows = {},
          .gemm = Gemm::kTiles,
          .tiles_speedup = speedup};
}

TEST(DescribeProductPlansTest, TellsWhatIsAlikeTogether) {
  EXPECT_EQ(Describe(Plans{OneDnns(768, 2304, 768), OneDnns(768, 768, 768), OneDnns(768, 3072, 768),
                           OneDnns(3072, 768, 768)}),
            "matrix products (in x out): oneDNN brg:avx512_core in row tiles of 256, 64, 16 for "
            "768x2304, 768x768, 768x3072; oneDNN brg:avx512_core in row tiles of 256, 64, 16 and K "
            "blocks of 768 for 3072x768");
}

TEST(DescribeProductPlansTest, TellsWhatWasTimed) {
  EXPECT_EQ(Describe(Plans{Own(768, 2304, 1.484), OneDnns(768, 768, 768, 1.08), Own(3072, 768, 2)}),
            "matrix products (in x out): the AMX GEMM for 768x2304, 3072x768; oneDNN "
            "brg:avx512_core in row tiles of 256, 64, 16 for 768x768; the AMX GEMM against oneDNN: "
            "768x2304 1.48x, 768x768 1.08x, 3072x768 2.00x");
}

ProductPlan OnVectors(int64_t in, int64_t out, WeightType weights) {
  return {.in = in,
          .out = out,
          .k_block = in,
          .tile_rows = {256, 64, 16},
          .implementations = {"avx2"},
          .gemm = Gemm::kVector,
          .weights = weights};
}

TEST(DescribeProductPlansTest, TellsTheTypeOfTheWeights) {
  EXPECT_EQ(Describe(Plans{OnVectors(768, 2304, WeightType::kF32),
                           OnVectors(768, 768, WeightType::kBf16)}),
            "matrix products (in x out): the vector GEMM (avx2) in row tiles of 256, 64, 16 for "
            "768x2304; the vector GEMM (avx2) over bf16 weights in row tiles of 256, 64, 16 for "
            "768x768");
}

TEST(WeightTypeOfTest, NamesWhatAllHaveInCommon) {
  const Plans bf16 = {OnVectors(4, 4, WeightType::kBf16), OnVectors(4, 8, WeightType::kBf16)};
  const Plans mixed = {OnVectors(4, 4, WeightType::kBf16), OneDnns(4, 8, 4)};
  EXPECT_EQ(WeightTypeOf(ComputeType::kF32, {}), "");
  EXPECT_EQ(WeightTypeOf(ComputeType::kF32, Plans{OneDnns(4, 4, 4)}), "f32");
  EXPECT_EQ(WeightTypeOf(ComputeType::kF32, bf16), "bf16");
  EXPECT_EQ(WeightTypeOf(ComputeType::kF32, mixed), "mixed");
  EXPECT_EQ(WeightTypeOf(ComputeType::kInt8, Plans{OneDnns(4, 4, 4)}), "");
}

TEST(GemmOfTest, NamesWhatAllHaveInCommon) {
  EXPECT_EQ(GemmOf({}), "");
  EXPECT_EQ(GemmOf(Plans{OneDnns(4, 4, 4), OneDnns(4, 8, 4)}), "onednn");
  EXPECT_EQ(GemmOf(Plans{Own(4, 4, 1.2), Own(4, 8, 1.3)}), "tiles");
  EXPECT_EQ(GemmOf(Plans{OnVectors(4, 4, WeightType::kF32)}), "vector");
  EXPECT_EQ(GemmOf(Plans{Own(4, 4, 1.2), OneDnns(4, 8, 4)}), "mixed");
}

}  // namespace product_plans_test
}  // namespace attendant::server
