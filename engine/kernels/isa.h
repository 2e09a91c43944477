// Which instructions the kernels may use, and what they run on.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace attendant {

enum class Isa { kBest, kAvx2, kAvx512, kAvx512Vnni, kAvx512Bf16, kAmx };

// Caps oneDNN and Highway together. Before the first kernel of the process, or FAILED_PRECONDITION;
// a cap above what the CPU has changes nothing. kBest: no cap. Not thread-safe.
absl::Status CapIsa(Isa cap);

// The newest that matters of what the CPU has, after the cap: "avx2", "avx2_vnni", "avx512",
// "avx512_vnni", "avx512_bf16", "amx"; "avx", "sse41" or "generic" on older ones.
std::string EffectiveIsa();

// Whether the CPU, after the cap, has units for products of bfloat16; tiles of them (AMX); of int8
// (VNNI).
bool HasBf16Units();
bool HasAmxUnits();
bool HasInt8Units();

// "2.6.3".
std::string OneDnnVersion();

}  // namespace attendant
