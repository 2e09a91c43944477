#include "tests/support/compute_modes.h"

#include "engine/kernels/gemm/compute_support.h"

namespace attendant {

std::string NameOf(const ComputeMode& mode) {
  return std::string(Name(mode.type)) + (mode.emulate ? "Emulated" : "") +
         (mode.gemm == Gemm::kTiles    ? "OnTiles"
          : mode.gemm == Gemm::kVector ? "OnVectors"
                                       : "");
}

std::vector<ComputeMode> NativeModes(absl::Span<const ComputeType> types) {
  std::vector<ComputeMode> modes;
  for (const ComputeType type : types) {
    for (const Gemm gemm : {Gemm::kOneDnn, Gemm::kTiles, Gemm::kVector}) {
      const ComputeMode mode{type, false, gemm};
      if (CheckComputeMode(mode).ok()) modes.push_back(mode);
    }
  }
  return modes;
}

std::vector<ComputeMode> EmulatedModes(absl::Span<const ComputeType> types) {
  std::vector<ComputeMode> modes;
  for (const ComputeType type : types) {
    if (CheckComputeMode({type, true}).ok()) modes.push_back({type, true});
  }
  return modes;
}

std::vector<ComputeMode> ModesOfThisCpu(absl::Span<const ComputeType> types) {
  std::vector<ComputeMode> modes = NativeModes(types);
  for (const ComputeMode& mode : EmulatedModes(types)) modes.push_back(mode);
  return modes;
}

ComputeMode BestMode(ComputeType type) { return ModesOfThisCpu({type}).front(); }

}  // namespace attendant
