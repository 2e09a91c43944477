// The compute modes of this CPU, for tests that run in each of them. They count the units that the
// CPU has under the cap on its instruction set. Finding these takes a kernel, after which CapIsa
// refuses, so tests must ask after the cap is set: INSTANTIATE_TEST_SUITE_P evaluates its values in
// main, after it.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "engine/base/compute_type.h"

namespace attendant {

// Returns a name for test names: "bf16", "bf16Emulated", "bf16OnTiles", "f32OnVectors".
std::string NameOf(const ComputeMode& mode);

// Returns the modes of these types that run on units of the CPU: by oneDNN's products, by the AMX
// GEMM if the CPU has tiles, and by the vector GEMM.
std::vector<ComputeMode> NativeModes(absl::Span<const ComputeType> types = kComputeTypes);

// Returns the emulated modes of these types, for types that can be emulated.
std::vector<ComputeMode> EmulatedModes(absl::Span<const ComputeType> types = kComputeTypes);

// Returns both.
std::vector<ComputeMode> ModesOfThisCpu(absl::Span<const ComputeType> types = kComputeTypes);

// Returns the mode that uses the CPU's own units for this type if it has them, and else emulates
// them.
ComputeMode BestMode(ComputeType type);

}  // namespace attendant
