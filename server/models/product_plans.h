// Describes the matrix products of a loaded model: oneDNN's or the server's own, and their
// blocking.
#pragma once

#include <string>

#include "absl/types/span.h"
#include "engine/kernels/gemm/gemm.h"

namespace attendant::server {

// Describes the plans in one line for the log. Layers with plans that differ only in width and
// speed-up are listed together.
std::string Describe(absl::Span<const ProductPlan> plans);

// Returns the value of GetModelResponse.gemm: "onednn", "tiles", "vector" or "mixed"; empty without
// plans.
std::string GemmOf(absl::Span<const ProductPlan> plans);

// Returns the value of GetModelResponse.weight_type: "f32", "bf16", "f16" or "mixed"; empty without
// plans or for a compute type other than f32.
std::string WeightTypeOf(ComputeType type, absl::Span<const ProductPlan> plans);

}  // namespace attendant::server
