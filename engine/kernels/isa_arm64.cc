#include <asm/hwcap.h>
#include <sys/auxv.h>

#include <atomic>

#include "engine/kernels/isa.h"

namespace attendant {
namespace {

constexpr Named<Isa> kCaps[] = {
    {"best", Isa::kBest}, {"neon", Isa::kNeon}, {"neon-dotprod", Isa::kNeonDotProduct}};

// The cap applies only to HasInt8Dots: Highway has only NEON, and oneDNN computes with reference
// code.
std::atomic<Isa> cap = Isa::kBest;
std::atomic<bool> has_asked = false;

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

std::string EffectiveIsa() { return HasInt8Dots() ? "neon_dotprod" : "neon"; }

bool HasBf16Units() { return false; }

bool HasAmxUnits() { return false; }

bool HasInt8Dots() {
  has_asked = true;
  return cap != Isa::kNeon && (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
}

}  // namespace attendant
