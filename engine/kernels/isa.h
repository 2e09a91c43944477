// The instruction sets of the CPU, and a cap on the ones that the kernels use.
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
  kNeonDotProduct,
  kNeonI8mm,
  kNeonBf16
};

// The oldest instruction set that the kernels support on CPUs of this architecture, and, for
// messages, those that have bf16 units.
#if defined(__aarch64__)
inline constexpr Isa kOldestIsa = Isa::kNeon;
inline constexpr char kIsasWithBf16Units[] = "neon_bf16";
#else
inline constexpr Isa kOldestIsa = Isa::kAvx2;
inline constexpr char kIsasWithBf16Units[] = "avx512_bf16 or amx";
#endif

// Returns the caps for CPUs of this architecture: kBest, then the others from the oldest on.
absl::Span<const Named<Isa>> IsaCaps();

// Returns FAILED_PRECONDITION, with the missing instruction sets, if the kernels do not support
// this CPU. An x86 CPU needs AVX2, FMA, BMI2 and F16C, which CPUs since 2013 to 2015 have.
absl::Status CheckCpu();

// Caps the instruction set of all kernels. `cap` must be in IsaCaps. A cap above the CPU's
// instruction set has no effect, and kBest means no cap. Returns the errors of CheckCpu, and
// FAILED_PRECONDITION if a kernel that depends on the cap has already run in this process, on arm64
// also after EffectiveIsa. Not thread-safe.
absl::Status CapIsa(Isa cap);

// Returns the newest relevant instruction set of the CPU, after the cap. On x86: "avx2",
// "avx2_vnni", "avx512", "avx512_vnni", "avx512_bf16" or "amx"; "avx", "sse41" or "generic" on CPUs
// that CheckCpu rejects. On arm64: "neon", "neon_dotprod", "neon_i8mm" or "neon_bf16".
std::string EffectiveIsa();

// Return whether the CPU, after the cap, supports bfloat16 products, tiles (AMX), sums of four int8
// products (AVX-VNNI, or the dot products of arm64), and products of small int8 matrices (i8mm of
// arm64).
bool HasBf16Units();
bool HasAmxUnits();
bool HasInt8Dots();
bool HasInt8Matrices();

// Abort the process with a message unless the CPU has these units. Every kernel with instructions
// that no Highway target guarantees begins with one of these, so that choosing the wrong kernel
// cannot cause a wrong result or an illegal instruction. They check the CPU once; later calls of
// CapIsa have no effect on them.
void RequireBf16Units();
void RequireAmxUnits();

// Aborts the process with a message: a kernel was called that CPUs of this architecture do not
// have, or not after the cap. `needed` names the instruction sets that have it.
[[noreturn]] void RefuseKernel(const char* needed);

// Returns the version of oneDNN, such as "2.6.3".
std::string OneDnnVersion();

}  // namespace attendant
