// Descriptions of the matrix products that a loaded model uses: oneDNN's or the server's own, and
// the blocks into which they are divided.
#pragma once

#include <string>

#include "absl/types/span.h"
#include "engine/kernels/gemm/gemm.h"

namespace attendant::server {

// Describes the plans in one line for the log. Layers whose plans differ only in their widths and
// speed-up are listed together.
std::string Describe(absl::Span<const ProductPlan> plans);

// Returns the value of GetModelResponse.gemm: "onednn", "tiles", "vector" or "mixed", empty without
// plans.
std::string GemmOf(absl::Span<const ProductPlan> plans);

// Returns the value of GetModelResponse.weight_type: "f32", "bf16", "f16" or "mixed", empty without
// plans or for another compute type than f32.
std::string WeightTypeOf(ComputeType type, absl::Span<const ProductPlan> plans);

}  // namespace attendant::server
