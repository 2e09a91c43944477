#include "engine/kernels/gemm/compute_support.h"

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/gemm/gemm_choice.h"
#include "engine/kernels/gemm/kernel_table.h"
#include "engine/kernels/gemm/product_plan.h"
#include "engine/kernels/isa.h"

namespace attendant {
namespace {

// Whether the vector GEMM multiplies this type on CPUs of this architecture that have its units.
bool HasVectorGemm(const ComputeMode& mode) {
  return mode.emulate || mode.type == ComputeType::kF32 || mode.type == ComputeType::kInt8 ||
         IsForVectorGemm(mode);
}

// Checks that the options of `mode` can be combined, on any CPU of this architecture.
absl::Status CheckCombination(const ComputeMode& mode) {
  if (mode.emulate && mode.type == ComputeType::kF32) {
    return absl::InvalidArgumentError(
        "emulate=true cannot be combined with dtype=f32, which runs on every CPU");
  }
  if (mode.gemm == Gemm::kTiles && (mode.emulate || mode.type == ComputeType::kF32)) {
    return absl::InvalidArgumentError(
        absl::StrCat("gemm=tiles requires dtype=bf16, bf16x3 or int8 without emulate=true; got ",
                     Name(mode.type), mode.emulate ? " with emulate=true" : ""));
  }
  if (mode.gemm == Gemm::kVector && !HasVectorGemm(mode)) {
    const bool has_bf16 = HasVectorGemm({ComputeType::kBf16});
    return absl::InvalidArgumentError(absl::StrCat(
        "gemm=vector requires dtype=f32", has_bf16 ? ", bf16" : "", " or int8; got ",
        Name(mode.type), "; set emulate=true to compute ", Name(mode.type), " in float32"));
  }
  if (mode.weights == WeightType::kAuto) return absl::OkStatus();
  if (mode.type != ComputeType::kF32) {
    return absl::InvalidArgumentError(
        absl::StrCat("weights=", Name(mode.weights), " requires dtype=f32; got ", Name(mode.type)));
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
  RETURN_IF_ERROR(CheckCpu());
  RETURN_IF_ERROR(CheckCombination(mode));
  if (mode.emulate) return absl::OkStatus();
  const auto refuse = [&](const char* needed) {
    return absl::FailedPreconditionError(absl::StrCat(
        "compute type ", Name(mode.type), " requires a CPU with ", needed, "; got ", EffectiveIsa(),
        " (after any cap); set emulate=true to compute ", Name(mode.type), " on any CPU"));
  };
  if (mode.gemm == Gemm::kTiles && !HasAmxUnits()) {
    return absl::FailedPreconditionError(absl::StrCat("gemm=tiles requires a CPU with amx; got ",
                                                      EffectiveIsa(),
                                                      " (after any cap); use gemm=auto"));
  }
  if (mode.type == ComputeType::kBf16x3 && !HasAmxUnits()) return refuse("amx");
  if (mode.type == ComputeType::kBf16 && !HasBf16Units()) return refuse(kIsasWithBf16Units);
  if (UsesVectorGemm(mode) || mode.type == ComputeType::kF32) return absl::OkStatus();
  const auto refuse_onednn = [&](const char* needed) {
    return absl::FailedPreconditionError(
        absl::StrCat("compute type ", Name(mode.type), " with gemm=onednn requires a CPU with ",
                     needed, "; got ", EffectiveIsa(), " (after any cap); use gemm=vector"));
  };
  if (mode.type != ComputeType::kInt8) {
    return IsForVectorGemm(mode) ? refuse_onednn("avx512_bf16 or amx") : absl::OkStatus();
  }
  // Only a typical layer; loading checks the layers of the model.
  const PanelShape typical = {.in = 768,
                              .width = kPanelWidth,
                              .k_block = 768,
                              .element = onednn::DataType::s8,
                              .has_bias = false};
  try {
    return FindPanelKernels(typical).exact ? absl::OkStatus() : refuse_onednn("avx512_vnni or amx");
  } catch (const dnnl::error& error) {
    return absl::InternalError(absl::StrCat("oneDNN cannot multiply int8: ", error.what()));
  }
}

}  // namespace attendant
