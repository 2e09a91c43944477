#include "engine/kernels/gemm/gemm_choice.h"

#include "engine/kernels/gemm/block_gemm.h"
#include "engine/kernels/gemm/gemm.h"
#include "engine/kernels/isa.h"
#include "gmock/gmock.h"
#include "tests/support/random_values.h"

namespace attendant {
namespace gemm_choice_test {

Gemm Chosen(const ComputeMode& mode, int64_t in = 64) {
  ProductPlan plan = {.in = in, .out = 64, .k_block = in};
  const absl::Status status = ChooseGemm(mode, plan);
  EXPECT_TRUE(status.ok()) << status;
  return status.ok() ? plan.gemm : Gemm::kAuto;
}

bool HasAvx512() { return EffectiveIsa().substr(0, 6) == "avx512" || HasAmxUnits(); }

TEST(ChooseGemmTest, TakesTheFasterProductsOfFloat32) {
  const bool is_for_onednn = HasAvx512() && EffectiveIsa() != "avx512_bf16";
  const Gemm expected = is_for_onednn ? Gemm::kOneDnn : Gemm::kVector;
  EXPECT_EQ(Chosen({}), expected);
  for (const ComputeType type : {ComputeType::kBf16x3, ComputeType::kBf16, ComputeType::kInt8}) {
    EXPECT_EQ(Chosen({type, true}), expected) << "emulated " << Name(type);
  }
}

TEST(ChooseGemmTest, TakesOneDnnsProductsOfInt8WhereTheyAreExact) {
  const bool has_vnni = HasAvx512() && EffectiveIsa() != "avx512";
  EXPECT_EQ(Chosen({ComputeType::kInt8}) == Gemm::kVector, !has_vnni);
}

TEST(ChooseGemmTest, TakesOwnProductsOfBfloat16OnArm) {
  if (kOldestIsa != Isa::kNeon) {
    EXPECT_NE(Chosen({ComputeType::kBf16}), Gemm::kVector);
    return;
  }
  EXPECT_EQ(Chosen({ComputeType::kBf16}), Gemm::kVector);
  const std::vector<float> weight = RandomValues(8 * 16, 1);
  const absl::StatusOr<PackedLinear> linear =
      PackedLinear::Pack({weight.data(), 8, 16, 16}, {}, {ComputeType::kBf16});
  ASSERT_TRUE(linear.ok()) << linear.status();
  EXPECT_EQ(linear->plan().gemm, Gemm::kVector);
  EXPECT_THAT(linear->plan().implementations, testing::ElementsAre("bfmmla"));
}

TEST(ChooseGemmTest, FollowsTheMode) {
  EXPECT_EQ(Chosen({ComputeType::kF32, false, Gemm::kOneDnn}), Gemm::kOneDnn);
  EXPECT_EQ(Chosen({ComputeType::kF32, false, Gemm::kVector}), Gemm::kVector);
  EXPECT_EQ(Chosen({ComputeType::kInt8, false, Gemm::kVector}), Gemm::kVector);
  EXPECT_EQ(Chosen({ComputeType::kBf16, true, Gemm::kVector}), Gemm::kVector);
}

TEST(ChooseGemmTest, FollowsTheModeWhereThereAreTiles) {
  const Gemm amx = HasAmxUnits() ? Gemm::kTiles : Gemm::kOneDnn;
  for (const ComputeType type : {ComputeType::kBf16x3, ComputeType::kBf16, ComputeType::kInt8}) {
    EXPECT_EQ(Chosen({type, false, Gemm::kOneDnn}), Gemm::kOneDnn);
    EXPECT_EQ(Chosen({type, false, Gemm::kTiles}), amx);
    EXPECT_EQ(Chosen({type, false, Gemm::kTiles}, 48), Gemm::kOneDnn) << "tiles that are not full";
  }
}

TEST(ChooseGemmTest, TellsWhatWasMeasuredAndKeepsToIt) {
  ProductPlan plan = {.in = 64, .out = 64, .k_block = 64}, again = plan;
  ASSERT_TRUE(ChooseGemm({ComputeType::kBf16}, plan).ok());
  EXPECT_EQ(plan.gemm == Gemm::kTiles, plan.tiles_speedup >= kWorthwhileSpeedup);
  if (!HasAmxUnits()) {
    EXPECT_EQ(plan.tiles_speedup, 0);
  }
  ASSERT_TRUE(ChooseGemm({ComputeType::kBf16}, again).ok());
  EXPECT_EQ(plan, again);
}

// A clock that products advance.
TEST(SpeedupTest, IsThatOfTheBestTimes) {
  absl::Time now = absl::UnixEpoch();
  int of_tiles = 0, of_onednn = 0;
  const double speedup =
      SpeedupOf({.tiles = [&] { now += absl::Microseconds(++of_tiles == 1 ? 90 : 10); },
                 .onednn = [&] { now += absl::Microseconds(++of_onednn == 2 ? 12 : 70); },
                 .before_each = [&] { now += absl::Seconds(1); }},
                [&] { return now; });
  EXPECT_DOUBLE_EQ(speedup, 1.2);
  EXPECT_EQ(of_tiles, of_onednn);
}

TEST(ProductPlanTest, TellsHowALayerIsComputed) {
  const std::vector<float> weight = RandomValues(40 * 1536, 1);
  const auto plan = [&](const ComputeMode& mode) {
    return PackedLinear::Pack({weight.data(), 40, 1536, 1536}, {}, mode)->plan();
  };
  const ProductPlan f32 = plan({.gemm = Gemm::kOneDnn});
  EXPECT_EQ(f32.in, 1536);
  EXPECT_EQ(f32.out, 40);
  EXPECT_EQ(f32.k_block, 1536);
  EXPECT_THAT(f32.tile_rows, testing::Not(testing::IsEmpty()));
  EXPECT_THAT(f32.implementations, testing::Not(testing::IsEmpty()));
  EXPECT_EQ(f32.gemm, Gemm::kOneDnn);
  EXPECT_EQ(f32.weights, WeightType::kF32);
  EXPECT_EQ(f32.tiles_speedup, 0);
  EXPECT_EQ(plan({ComputeType::kBf16, true}).k_block, 768);
  const ProductPlan f16 = plan({.weights = WeightType::kF16});
  EXPECT_EQ(f16.gemm, Gemm::kVector);
  EXPECT_EQ(f16.weights, WeightType::kF16);
  EXPECT_THAT(f16.implementations, testing::ElementsAre(VectorKernelName(GemmElement::kFloat16)));
  const ProductPlan int8 = plan({.type = ComputeType::kInt8, .gemm = Gemm::kVector});
  EXPECT_THAT(int8.implementations, testing::ElementsAre(VectorKernelName(GemmElement::kInt8)));
}

}  // namespace gemm_choice_test
}  // namespace attendant
