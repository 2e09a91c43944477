#include "engine/kernels/gemm/compute_support.h"

#include <string>

#include "engine/kernels/gemm/kernel_table.h"
#include "engine/kernels/isa.h"
#include "gmock/gmock.h"

namespace attendant {
namespace compute_support_test {

using testing::EndsWith;
using testing::HasSubstr;

// Whether oneDNN's products of int8 saturate on the oldest CPUs of this architecture. Those of
// arm64 are reference code.
constexpr bool kSaturates = kOldestIsa == Isa::kAvx2;
constexpr bool kIsArm = kOldestIsa == Isa::kNeon;
constexpr Isa kNewestBelowAmx = kIsArm ? Isa::kNeonBf16 : Isa::kAvx512Bf16;

TEST(CheckComputeModeTest, TakesFloat32AndEmulationEverywhere) {
  EXPECT_TRUE(CheckComputeMode({}).ok());
  EXPECT_TRUE(CheckComputeMode({ComputeType::kBf16x3, true}).ok());
  EXPECT_TRUE(CheckComputeMode({ComputeType::kBf16, true}).ok());
  EXPECT_TRUE(CheckComputeMode({ComputeType::kInt8, true}).ok());
}

TEST(CheckComputeModeTest, RefusesToEmulateFloat32) {
  const absl::Status status = CheckComputeMode({ComputeType::kF32, true});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "emulate=true cannot be combined with dtype=f32, which runs on every CPU");
}

TEST(CheckComputeModeTest, RefusesProductsOfOurOwnThatThereAreNot) {
  const absl::Status of_f32 = CheckComputeMode({ComputeType::kF32, false, Gemm::kTiles});
  EXPECT_EQ(of_f32.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(of_f32.message(),
            "gemm=tiles requires dtype=bf16, bf16x3 or int8 without emulate=true; got f32");
  const absl::Status emulated = CheckComputeMode({ComputeType::kBf16, true, Gemm::kTiles});
  EXPECT_EQ(emulated.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(emulated.message()),
              EndsWith("without emulate=true; got bf16 with emulate=true"));
}

TEST(CheckComputeModeTest, RefusesVectorProductsOfBfloat16) {
  const std::string types = kIsArm ? "f32, bf16 or int8" : "f32 or int8";
  for (const ComputeType type : {ComputeType::kBf16, ComputeType::kBf16x3}) {
    EXPECT_TRUE(CheckComputeMode({type, true, Gemm::kVector}).ok());
    const absl::Status status = CheckComputeMode({type, false, Gemm::kVector});
    if (kIsArm && type == ComputeType::kBf16) {
      EXPECT_EQ(status, CheckComputeMode({type}));
      continue;
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), "gemm=vector requires dtype=" + types + "; got " + Name(type) +
                                    "; set emulate=true to compute " + Name(type) + " in float32");
  }
  EXPECT_TRUE(CheckComputeMode({ComputeType::kF32, false, Gemm::kVector}).ok());
  EXPECT_TRUE(CheckComputeMode({ComputeType::kInt8, false, Gemm::kVector}).ok());
}

TEST(CheckComputeModeTest, RefusesTypesOfWeightsThatNothingReads) {
  const absl::Status of_int8 =
      CheckComputeMode({.type = ComputeType::kInt8, .weights = WeightType::kF32});
  EXPECT_EQ(of_int8.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(of_int8.message(), "weights=f32 requires dtype=f32; got int8");
  const absl::Status of_onednn =
      CheckComputeMode({.gemm = Gemm::kOneDnn, .weights = WeightType::kBf16});
  EXPECT_EQ(of_onednn.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(of_onednn.message(),
            "weights=bf16 cannot be combined with gemm=onednn, which reads float32");
  for (const WeightType type : {WeightType::kF32, WeightType::kBf16, WeightType::kF16}) {
    EXPECT_TRUE(CheckComputeMode({.weights = type}).ok());
  }
  EXPECT_TRUE(CheckComputeMode({.gemm = Gemm::kOneDnn, .weights = WeightType::kF32}).ok());
}

TEST(CheckComputeModeTest, TakesProductsOfOurOwnWhereThereIsAmx) {
  for (const ComputeType type : {ComputeType::kBf16x3, ComputeType::kBf16, ComputeType::kInt8}) {
    const absl::Status status = CheckComputeMode({type, false, Gemm::kTiles});
    if (HasAmxUnits()) {
      EXPECT_TRUE(status.ok()) << status;
      continue;
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(status.message(), "gemm=tiles requires a CPU with amx; got " + EffectiveIsa() +
                                    " (after any cap); use gemm=auto");
  }
}

// The expectation is what the CPU reports.
TEST(CheckComputeModeTest, TakesTheTypesThatTheCpuHasUnitsFor) {
  const auto check = [](ComputeType type, bool has_units, const std::string& needed) {
    const absl::Status status = CheckComputeMode({type, false});
    EXPECT_EQ(status.ok(), has_units) << status;
    if (has_units) return;
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(std::string("compute type ") + Name(type)));
    EXPECT_THAT(std::string(status.message()), HasSubstr("requires a CPU with " + needed));
    EXPECT_THAT(std::string(status.message()), HasSubstr("; got " + EffectiveIsa()));
    EXPECT_THAT(std::string(status.message()),
                EndsWith(std::string("set emulate=true to compute ") + Name(type) + " on any CPU"));
  };
  check(ComputeType::kBf16x3, HasAmxUnits(), "amx");
  check(ComputeType::kBf16, HasBf16Units(), kIsArm ? "neon_bf16" : "avx512_bf16 or amx");
  EXPECT_TRUE(CheckComputeMode({ComputeType::kInt8, false}).ok());
}

// oneDNN has products of bfloat16 wherever an x86 CPU has the units, and none on arm64.
TEST(CheckComputeModeTest, RefusesOneDnnsBfloat16OnArm) {
  const absl::Status status = CheckComputeMode({ComputeType::kBf16, false, Gemm::kOneDnn});
  if (!kIsArm || !HasBf16Units()) {
    EXPECT_EQ(status, CheckComputeMode({ComputeType::kBf16}));
    return;
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "compute type bf16 with gemm=onednn requires a CPU with avx512_bf16 or amx; got "
            "neon_bf16 (after any cap); use gemm=vector");
}

// Runs in a process of its own, because a cap cannot be undone.
TEST(CheckComputeModeDeathTest, RefusesWhatACapTakesAway) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        const bool capped = CapIsa(kOldestIsa).ok();
        const auto is_refused = [](ComputeType type) {
          return absl::IsFailedPrecondition(CheckComputeMode({type, false}));
        };
        std::exit(capped && is_refused(ComputeType::kBf16x3) && is_refused(ComputeType::kBf16) &&
                          !is_refused(ComputeType::kInt8)
                      ? 0
                      : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(CheckComputeModeDeathTest, RefusesBf16UnderCapsWithoutItsUnits) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  for (const Named<Isa>& cap : IsaCaps()) {
    const std::string name = cap.name;
    if (name == "best" || name == "amx" || name.find("bf16") != std::string::npos) continue;
    EXPECT_EXIT(
        {
          const bool capped = CapIsa(cap.value).ok();
          const absl::Status status = CheckComputeMode({ComputeType::kBf16});
          std::exit(capped && absl::IsFailedPrecondition(status) ? 0 : 1);
        },
        testing::ExitedWithCode(0), "")
        << name;
  }
}

TEST(CheckComputeModeDeathTest, RefusesOneDnnsInt8WhereItSaturates) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        const bool capped = CapIsa(kOldestIsa).ok();
        const absl::Status status = CheckComputeMode({ComputeType::kInt8, false, Gemm::kOneDnn});
        const bool told = status.message() ==
                          "compute type int8 with gemm=onednn requires a CPU with avx512_vnni or "
                          "amx; got avx2 (after any cap); use gemm=vector";
        const bool refused = absl::IsFailedPrecondition(status) && told;
        std::exit(capped && (kSaturates ? refused : status.ok()) ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

// Without VNNI, pairs of products are added in 16 bits, which the check of a panel's own kernels
// detects.
TEST(FindPanelKernelsDeathTest, SeesInt8SumsThatSaturate) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        const bool capped = CapIsa(kOldestIsa).ok();
        const PanelKernels& kernels = FindPanelKernels({.in = 768,
                                                        .width = 192,
                                                        .k_block = 768,
                                                        .element = onednn::DataType::s8,
                                                        .has_bias = false});
        std::exit(capped && kernels.exact != kSaturates ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

// Units for bfloat16 without tiles would make bf16x3 slower than f32.
TEST(CheckComputeModeDeathTest, RefusesBf16x3BelowAmx) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        const bool capped = CapIsa(kNewestBelowAmx).ok();
        const absl::Status status = CheckComputeMode({ComputeType::kBf16x3, false});
        std::exit(capped && absl::IsFailedPrecondition(status) ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace compute_support_test
}  // namespace attendant
