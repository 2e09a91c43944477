#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <iterator>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/kernels/isa.h"
#include "engine/kernels/onednn.h"
#include "hwy/targets.h"

namespace attendant {
namespace {

constexpr Named<Isa> kCaps[] = {{"best", Isa::kBest},
                                {"avx2", Isa::kAvx2},
                                {"avx512", Isa::kAvx512},
                                {"avx512-vnni", Isa::kAvx512Vnni},
                                {"avx512-bf16", Isa::kAvx512Bf16},
                                {"amx", Isa::kAmx}};

// Returns the bits of Highway's x86 targets that are better than `target`: a better target has a
// lower bit.
constexpr int64_t Above(int64_t target) { return target - 1; }

struct CapOfLibraries {
  Isa cap;
  dnnl::cpu_isa onednn;
  int64_t highway_disabled;
};

constexpr CapOfLibraries kCapsOfLibraries[] = {
    {Isa::kAvx2, dnnl::cpu_isa::avx2, Above(HWY_AVX2)},
    {Isa::kAvx512, dnnl::cpu_isa::avx512_core, Above(HWY_AVX3)},
    {Isa::kAvx512Vnni, dnnl::cpu_isa::avx512_core_vnni, Above(HWY_AVX3)},
    {Isa::kAvx512Bf16, dnnl::cpu_isa::avx512_core_bf16, Above(HWY_AVX3_DL)},
    {Isa::kAmx, dnnl::cpu_isa::avx512_core_amx, 0}};

// oneDNN's values are bit sets that include the bits of every older instruction set.
bool Has(dnnl::cpu_isa isa) {
  const unsigned bits = static_cast<unsigned>(isa);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & bits) == bits;
}

// clang 14 does not know these two as literals of __builtin_cpu_supports.
bool HasF16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

bool HasAvxVnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & bit_AVXVNNI) != 0;
}

}  // namespace

absl::Span<const Named<Isa>> IsaCaps() { return kCaps; }

absl::Status CheckCpu() {
  std::vector<const char*> missing;
  // The builtin accepts only literals. Highway's AVX2 and oneDNN's kernels use all of these.
  if (!__builtin_cpu_supports("avx2")) missing.push_back("avx2");
  if (!__builtin_cpu_supports("fma")) missing.push_back("fma");
  if (!__builtin_cpu_supports("bmi2")) missing.push_back("bmi2");
  if (!HasF16c()) missing.push_back("f16c");
  if (!missing.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("CPU: expected avx2, fma, bmi2 and f16c (x86-64-v3); got a CPU without ",
                     absl::StrJoin(missing, ", "),
                     "; use Intel Haswell or AMD Excavator or later, or configure the virtual "
                     "machine to expose these CPU flags"));
  }
  return absl::OkStatus();
}

absl::Status CapIsa(Isa cap) {
  if (absl::Status status = CheckCpu(); !status.ok()) return status;
  if (hwy::GetChosenTarget().IsInitialized()) {
    return absl::FailedPreconditionError(
        "the instruction set cannot be capped after the first kernel has run");
  }
  const auto* const caps =
      absl::c_find_if(kCapsOfLibraries, [&](const CapOfLibraries& one) { return one.cap == cap; });
  if (caps == std::end(kCapsOfLibraries)) return absl::OkStatus();
  const dnnl::status status = dnnl::set_max_cpu_isa(caps->onednn);
  if (status != dnnl::status::success) {
    return absl::FailedPreconditionError(absl::StrCat(
        "oneDNN cannot cap the instruction set, for example after its first use: status ",
        static_cast<int>(status)));
  }
  hwy::DisableTargets(caps->highway_disabled);
  return absl::OkStatus();
}

std::string EffectiveIsa() {
  using dnnl::cpu_isa;
  constexpr std::pair<cpu_isa, const char*> kNewestFirst[] = {
      {cpu_isa::avx512_core_amx, "amx"},
      {cpu_isa::avx512_core_bf16, "avx512_bf16"},
      {cpu_isa::avx512_core_vnni, "avx512_vnni"},
      {cpu_isa::avx512_core, "avx512"},
      {cpu_isa::avx2_vnni, "avx2_vnni"},
      {cpu_isa::avx2, "avx2"},
      {cpu_isa::avx, "avx"},
      {cpu_isa::sse41, "sse41"}};
  for (const auto& [isa, name] : kNewestFirst) {
    if (Has(isa)) return name;
  }
  return "generic";
}

bool HasBf16Units() { return Has(dnnl::cpu_isa::avx512_core_bf16); }

bool HasAmxUnits() {
  // Linux requires a process to request permission for tiles. oneDNN requests it only at its first
  // use of them.
  constexpr int64_t kRequestPermission = 0x1023, kTileData = 18;
  static const bool permitted = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return permitted && Has(dnnl::cpu_isa::avx512_core_amx);
}

bool HasInt8Dots() {
  return HasAvxVnni() && (Has(dnnl::cpu_isa::avx2_vnni) || Has(dnnl::cpu_isa::avx512_core_vnni));
}

bool HasInt8Matrices() { return false; }

}  // namespace attendant
