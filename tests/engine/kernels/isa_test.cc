#include "engine/kernels/isa.h"

#include <vector>

#include "engine/kernels/activation.h"
#include "gmock/gmock.h"

namespace attendant {
namespace {

TEST(IsaTest, NamesWhatItRunsOn) {
  EXPECT_THAT(EffectiveIsa(), testing::AnyOf("generic", "sse41", "avx", "avx2", "avx2_vnni",
                                             "avx512", "avx512_vnni", "avx512_bf16", "amx"));
  EXPECT_THAT(OneDnnVersion(), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
}

TEST(IsaTest, RefusesACapAfterTheFirstKernel) {
  std::vector<float> value = {1.0f};
  Activate(Activation::kGelu, {value.data(), 1, 1, 1});
  for (const Isa cap :
       {Isa::kBest, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni, Isa::kAvx512Bf16, Isa::kAmx}) {
    const absl::Status status = CapIsa(cap);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("after the first kernel"));
  }
}

// Runs in a process of its own, because a cap cannot be undone.
TEST(IsaDeathTest, CapsBothLibrariesBeforeTheFirstKernel) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        const bool capped = CapIsa(Isa::kAvx2).ok();
        std::vector<float> value = {1.0f};
        Activate(Activation::kRelu, {value.data(), 1, 1, 1});
        const bool has_units = HasBf16Units() || HasInt8Units();
        std::exit(capped && EffectiveIsa() == "avx2" && !has_units ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace attendant
