#include "engine/kernels/isa.h"

#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/kernels/activation.h"
#include "engine/kernels/attention/attention_block.h"
#include "engine/kernels/gemm/block_gemm.h"
#include "gmock/gmock.h"

namespace attendant {
namespace isa_test {

TEST(IsaTest, NamesWhatItRunsOn) {
  EXPECT_THAT(EffectiveIsa(), testing::AnyOf("generic", "sse41", "avx", "avx2", "avx2_vnni",
                                             "avx512", "avx512_vnni", "avx512_bf16", "amx", "neon",
                                             "neon_dotprod", "neon_i8mm", "neon_bf16"));
  EXPECT_THAT(OneDnnVersion(), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
}

TEST(IsaTest, RefusesACapAfterTheFirstKernel) {
  std::vector<float> value = {1.0f};
  Activate(Activation::kGelu, {value.data(), 1, 1, 1});
  BlockGemm of_nothing = {};
  of_nothing.element = GemmElement::kInt8;
  RunVectorGemm(of_nothing);
  for (const Named<Isa>& cap : IsaCaps()) {
    const absl::Status status = CapIsa(cap.value);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("after the first kernel"));
  }
}

TEST(IsaTest, HasCapsOfThisArchitecture) {
  EXPECT_EQ(IsaCaps().front().value, Isa::kBest);
  EXPECT_EQ(IsaCaps()[1].value, kOldestIsa);
}

// Runs in a process of its own, because a cap cannot be undone.
TEST(IsaDeathTest, CapsBothLibrariesBeforeTheFirstKernel) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        const bool capped = CapIsa(kOldestIsa).ok();
        std::vector<float> value = {1.0f};
        Activate(Activation::kRelu, {value.data(), 1, 1, 1});
        const bool has_units = HasBf16Units() || HasInt8Dots() || HasInt8Matrices();
        std::exit(capped && EffectiveIsa() == IsaCaps()[1].name && !has_units ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

// Returns the place of EffectiveIsa among the caps, or that of kBest if no cap has its name.
size_t PlaceOfIsa() {
  const absl::Span<const Named<Isa>> caps = IsaCaps();
  const std::string name = absl::StrReplaceAll(EffectiveIsa(), {{"_", "-"}});
  for (size_t i = 0; i < caps.size(); ++i) {
    if (name == caps[i].name) return i;
  }
  return 0;
}

TEST(IsaDeathTest, IsNotNewerThanAnyCap) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  for (size_t i = 1; i < IsaCaps().size(); ++i) {
    EXPECT_EXIT(std::exit(CapIsa(IsaCaps()[i].value).ok() && PlaceOfIsa() <= i ? 0 : 1),
                testing::ExitedWithCode(0), "")
        << IsaCaps()[i].name;
  }
}

// Kernels whose instructions none of Highway's targets guarantees.
struct UnitKernel {
  const char* name;
  const char* needed;
  void (*run)();
};

void PrintTo(const UnitKernel& kernel, std::ostream* out) { *out << kernel.name; }

constexpr Bf16Rows kNoRows = {nullptr, 0};
constexpr MatrixView<const float> kNothing = {nullptr, 0, 0, 0};

void AttendWith(AttentionOperands operands) {
  AttentionBlock block;
  block.operands = operands;
  AttendHeads({&block, 1}, AttentionScratch());
}

constexpr UnitKernel kUnitKernels[] = {
    {"ActivateToBf16", kIsasWithBf16Units,
     [] { ActivateToBf16(Activation::kIdentity, kNothing, kNoRows); }},
    {"AttendPairs", kIsasWithBf16Units, [] { AttendWith(AttentionOperands::kPairs); }},
    {"AttendTiles", "amx", [] { AttendWith(AttentionOperands::kTiles); }},
    {"VectorGemmOfBf16", "neon_bf16",
     [] {
       BlockGemm of_nothing = {};
       of_nothing.element = GemmElement::kBFloat16Both;
       RunVectorGemm(of_nothing);
     }},
    {"AmxGemm", "amx", [] { RunAmxGemm({}); }}};

class UnitKernelDeathTest : public testing::TestWithParam<UnitKernel> {};

// Whatever the CPU is, under a cap it has no such units.
TEST_P(UnitKernelDeathTest, IsRefusedOnACpuWithoutItsUnits) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        if (CapIsa(kOldestIsa).ok()) GetParam().run();
      },
      absl::StrCat("a kernel for CPUs with ", GetParam().needed,
                   " was called; this CPU has [a-z0-9]+ \\(after any cap\\)"));
}

INSTANTIATE_TEST_SUITE_P(All, UnitKernelDeathTest, testing::ValuesIn(kUnitKernels),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace isa_test
}  // namespace attendant
