#include <asm/hwcap.h>
#include <sys/auxv.h>

#include <algorithm>
#include <atomic>

#include "absl/strings/str_replace.h"
#include "engine/kernels/isa.h"

namespace attendant {
namespace {

constexpr Named<Isa> kCaps[] = {{"best", Isa::kBest},
                                {"neon", Isa::kNeon},
                                {"neon-dotprod", Isa::kNeonDotProduct},
                                {"neon-i8mm", Isa::kNeonI8mm},
                                {"neon-bf16", Isa::kNeonBf16}};

// The cap applies only to Newest: Highway has only NEON, and oneDNN computes with reference code.
std::atomic<Isa> cap = Isa::kBest;
std::atomic<bool> has_asked = false;

// Returns the newest instruction set of which the CPU also has all older ones.
Isa NewestOfCpu() {
  if ((getauxval(AT_HWCAP) & HWCAP_ASIMDDP) == 0) return Isa::kNeon;
  const auto units = getauxval(AT_HWCAP2);
  if ((units & HWCAP2_I8MM) == 0) return Isa::kNeonDotProduct;
  return (units & HWCAP2_BF16) == 0 ? Isa::kNeonI8mm : Isa::kNeonBf16;
}

// Likewise after the cap.
Isa Newest() {
  has_asked = true;
  return cap == Isa::kBest ? NewestOfCpu() : std::min(NewestOfCpu(), cap.load());
}

}  // namespace

absl::Span<const Named<Isa>> IsaCaps() { return kCaps; }

// All arm64 CPUs have NEON.
absl::Status CheckCpu() { return absl::OkStatus(); }

absl::Status CapIsa(Isa newest) {
  if (has_asked) {
    return absl::FailedPreconditionError(
        "the instruction set cannot be capped after the first kernel has run");
  }
  cap = newest;
  return absl::OkStatus();
}

std::string EffectiveIsa() { return absl::StrReplaceAll(NameIn(kCaps, Newest()), {{"-", "_"}}); }

bool HasBf16Units() { return Newest() >= Isa::kNeonBf16; }

bool HasAmxUnits() { return false; }

bool HasInt8Dots() { return Newest() >= Isa::kNeonDotProduct; }

bool HasInt8Matrices() { return Newest() >= Isa::kNeonI8mm; }

}  // namespace attendant
