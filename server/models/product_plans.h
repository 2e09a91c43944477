// Whose matrix products a loaded model uses, and how they are cut.
#pragma once

#include <string>

#include "absl/types/span.h"
#include "engine/kernels/gemm/gemm.h"

namespace attendant::server {

// For the log, in one line; layers whose plans differ in nothing but their widths and speed-up are
// told together.
std::string Describe(absl::Span<const ProductPlan> plans);

// As GetModelResponse.gemm has it.
std::string GemmOf(absl::Span<const ProductPlan> plans);

}  // namespace attendant::server
