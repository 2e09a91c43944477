#include "engine/kernels/gemm/compute_support.h"

#include "absl/strings/str_cat.h"
#include "engine/kernels/gemm/gemm_choice.h"
#include "engine/kernels/gemm/kernel_table.h"
#include "engine/kernels/gemm/product_plan.h"
#include "engine/kernels/isa.h"

namespace attendant {
namespace {

// The kernels of a panel of a typical int8 layer. Loading checks those of the model's own layers.
absl::StatusOr<const PanelKernels*> FindInt8Kernels() {
  return FindPanelKernels({.in = 768,
                           .width = kPanelWidth,
                           .k_block = 768,
                           .element = onednn::DataType::s8,
                           .has_bias = false});
}

// Checks that the options of `mode` can be combined, on any CPU.
absl::Status CheckCombination(const ComputeMode& mode) {
  if (mode.emulate && mode.type == ComputeType::kF32) {
    return absl::InvalidArgumentError("compute type f32 cannot be emulated: it runs on every CPU");
  }
  if (mode.gemm == Gemm::kTiles && (mode.emulate || mode.type == ComputeType::kF32)) {
    return absl::InvalidArgumentError(
        absl::StrCat("gemm=tiles multiplies bf16, bf16x3 or int8, not ", Name(mode.type),
                     mode.emulate ? " with emulate=true, which is products of f32" : ""));
  }
  if (mode.gemm == Gemm::kVector && !mode.emulate && mode.type != ComputeType::kF32 &&
      mode.type != ComputeType::kInt8) {
    return absl::InvalidArgumentError(absl::StrCat("gemm=vector multiplies f32 or int8, not ",
                                                   Name(mode.type), "; emulate=true computes ",
                                                   Name(mode.type), " in float32"));
  }
  if (mode.weights == WeightType::kAuto) return absl::OkStatus();
  if (mode.type != ComputeType::kF32) {
    return absl::InvalidArgumentError(absl::StrCat("weights=", Name(mode.weights),
                                                   " requires dtype=f32; ", Name(mode.type),
                                                   " keeps weights in a type of its own"));
  }
  if (mode.gemm == Gemm::kOneDnn && mode.weights != WeightType::kF32) {
    return absl::InvalidArgumentError(
        absl::StrCat("weights=", Name(mode.weights),
                     " cannot be combined with gemm=onednn, which reads float32"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckComputeMode(const ComputeMode& mode) {
  if (absl::Status status = CheckCpu(); !status.ok()) return status;
  if (absl::Status status = CheckCombination(mode); !status.ok()) return status;
  if (mode.emulate || UsesVectorGemm(mode)) return absl::OkStatus();
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
  const absl::StatusOr<const PanelKernels*> kernels = FindInt8Kernels();
  if (!kernels.ok()) return kernels.status();
  if ((*kernels)->exact) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "compute type int8 with gemm=onednn needs a CPU with avx512_vnni or amx, this one "
      "has ",
      EffectiveIsa(), " (after any cap); gemm=vector computes so on any CPU"));
}

}  // namespace attendant
