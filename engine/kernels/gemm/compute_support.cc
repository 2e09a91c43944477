#include "engine/kernels/gemm/compute_support.h"

#include "absl/strings/str_cat.h"
#include "engine/base/rules.h"
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
  const bool is_float32 = mode.type == ComputeType::kF32;
  const char* const type = Name(mode.type);
  Rules rules;
  rules.Require(!mode.emulate || !is_float32,
                "emulate=true cannot be combined with dtype=f32, which runs on every CPU");
  rules.Require(mode.gemm != Gemm::kTiles || (!mode.emulate && !is_float32),
                "gemm=tiles requires dtype=bf16, bf16x3 or int8 without emulate=true; got ", type,
                mode.emulate ? " with emulate=true" : "");
  const bool is_missing = mode.gemm == Gemm::kVector && !HasVectorGemm(mode);
  rules.Require(!is_missing, "gemm=vector requires dtype=f32",
                is_missing && HasVectorGemm({ComputeType::kBf16}) ? ", bf16" : "", " or int8; got ",
                type, "; set emulate=true to compute ", type, " in float32");
  rules.Require(mode.weights == WeightType::kAuto || is_float32, "weights=", Name(mode.weights),
                " requires dtype=f32; got ", type);
  const bool is_wide = mode.weights == WeightType::kAuto || mode.weights == WeightType::kF32;
  rules.Require(mode.gemm != Gemm::kOneDnn || is_wide, "weights=", Name(mode.weights),
                " cannot be combined with gemm=onednn, which reads float32");
  return rules.status();
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
