// The instruction sets that the kernels may use, and those that the CPU has.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/base/names.h"

namespace attendant {

enum class Isa {
  kBest,
  // x86
  kAvx2,
  kAvx512,
  kAvx512Vnni,
  kAvx512Bf16,
  kAmx,
  // arm64
  kNeon,
  kNeonDotProduct
};

// The oldest one that the kernels serve on CPUs of this build's architecture.
#if defined(__aarch64__)
inline constexpr Isa kOldestIsa = Isa::kNeon;
#else
inline constexpr Isa kOldestIsa = Isa::kAvx2;
#endif

// Returns the caps for CPUs of this architecture, the oldest first after kBest.
absl::Span<const Named<Isa>> IsaCaps();

// Returns FAILED_PRECONDITION, naming what is missing, on a CPU that the kernels do not serve: an
// x86 CPU needs AVX2, FMA, BMI2 and F16C, as CPUs have them since 2013 to 2015.
absl::Status CheckCpu();

// Caps the instruction set of all kernels. `cap` is one of IsaCaps; a cap above what the CPU has
// changes nothing, and kBest means no cap. Returns the error of CheckCpu if there is one, and
// FAILED_PRECONDITION after the first kernel of the process has run for which it would make a
// difference. Not thread-safe.
absl::Status CapIsa(Isa cap);

// Returns the newest relevant instruction set of the CPU, after the cap. On x86: "avx2",
// "avx2_vnni", "avx512", "avx512_vnni", "avx512_bf16" or "amx"; "avx", "sse41" or "generic" on CPUs
// that CheckCpu refuses. On arm64: "neon" or "neon_dotprod".
std::string EffectiveIsa();

// Return whether the CPU, after the cap, has units for products of bfloat16, for tiles (AMX), and
// for sums of four products of int8: the instructions of AVX-VNNI, or the dot products of arm64.
bool HasBf16Units();
bool HasAmxUnits();
bool HasInt8Dots();

// End the process with a message unless the CPU has those units. Every kernel whose instructions
// none of Highway's targets guarantees begins with one of these, so that a mistake in the choice of
// a kernel is neither a wrong result nor an illegal instruction. They ask the CPU once, after which
// CapIsa changes nothing for them.
void RequireBf16Units();
void RequireAmxUnits();

// Returns the version, such as "2.6.3".
std::string OneDnnVersion();

}  // namespace attendant
