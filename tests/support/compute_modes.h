// How this CPU can compute, for tests of every way. What it has units for is counted after the cap,
// and takes a kernel to find out, after which CapIsa refuses. INSTANTIATE_TEST_SUITE_P evaluates
// its values in main, behind the cap.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "engine/base/compute_type.h"

namespace attendant {

// "bf16", "bf16Emulated", "bf16OnTiles".
std::string NameOf(const ComputeMode& mode);

// The modes of these types that the CPU has units for, on its units: by oneDNN's products, and by
// the AMX GEMM where it exists.
std::vector<ComputeMode> NativeModes(absl::Span<const ComputeType> types = kComputeTypes);

// The emulated modes of these types, where they can be emulated.
std::vector<ComputeMode> EmulatedModes(absl::Span<const ComputeType> types = kComputeTypes);

// Both.
std::vector<ComputeMode> ModesOfThisCpu(absl::Span<const ComputeType> types = kComputeTypes);

// The CPU's own units for this type if it has them, else the emulation.
ComputeMode BestMode(ComputeType type);

}  // namespace attendant
