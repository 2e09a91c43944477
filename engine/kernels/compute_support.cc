#include "engine/kernels/compute_support.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/kernels/gemm.h"
#include "engine/kernels/isa.h"

namespace attendant {
namespace {

// Products of the largest int8 values saturate where oneDNN's kernel adds pairs of them in 16 bits,
// as those without VNNI do.
absl::StatusOr<bool> Int8IsExact() {
  constexpr int64_t kIn = 64, kOut = 64;
  const std::vector<float> ones(kOut * kIn, 1.0f);
  const MatrixView<const float> matrix{ones.data(), kOut, kIn, kIn};
  absl::StatusOr<PackedLinear> linear =
      PackedLinear::Pack(matrix, {}, {.type = ComputeType::kInt8, .gemm = Gemm::kOneDnn});
  if (!linear.ok()) return linear.status();
  GemmWorkspace workspace(1);
  workspace.Reserve(*linear, kRowTile);
  std::vector<float> y(kRowTile * kOut);
  ApplyLinear(ThreadTeam(1), *linear, matrix.Rows(0, kRowTile), {y.data(), kRowTile, kOut, kOut},
              Activation::kIdentity, workspace);
  return std::all_of(y.begin(), y.end(), [](float sum) { return sum > kIn - 1 && sum < kIn + 1; });
}

}  // namespace

absl::Status CheckComputeMode(const ComputeMode& mode) {
  if (mode.emulate && mode.type == ComputeType::kF32) {
    return absl::InvalidArgumentError("compute type f32 cannot be emulated: it runs on every CPU");
  }
  if (mode.gemm == Gemm::kTiles && (mode.emulate || mode.type == ComputeType::kF32)) {
    return absl::InvalidArgumentError(
        absl::StrCat("gemm=tiles multiplies bf16, bf16x3 or int8, not ", Name(mode.type),
                     mode.emulate ? " with emulate=true, which is products of f32" : ""));
  }
  if (mode.emulate) return absl::OkStatus();
  const auto refuse = [&](const char* needed) {
    return absl::FailedPreconditionError(absl::StrCat(
        "compute type ", Name(mode.type), " needs a CPU with ", needed, ", this one has ",
        EffectiveIsa(), " (after any cap); emulate=true computes so on any CPU"));
  };
  if (mode.gemm == Gemm::kTiles && !HasAmxUnits()) {
    return absl::FailedPreconditionError(
        absl::StrCat("gemm=tiles needs a CPU with amx, this one has ", EffectiveIsa(),
                     " (after any cap); gemm=auto uses what the CPU has"));
  }
  if (mode.type == ComputeType::kBf16x3 && !HasAmxUnits()) return refuse("amx");
  if (mode.type == ComputeType::kBf16 && !HasBf16Units()) return refuse("avx512_bf16 or amx");
  if (mode.type != ComputeType::kInt8) return absl::OkStatus();
  if (!HasInt8Units()) return refuse("avx2_vnni, avx512_vnni or amx");
  const absl::StatusOr<bool> exact = Int8IsExact();
  if (!exact.ok()) return exact.status();
  if (*exact) return absl::OkStatus();
  return refuse("avx512_vnni or amx that oneDNN uses");
}

}  // namespace attendant
