// Random numbers for tests, the same in every run.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/matrix_view.h"

namespace attendant {

// Returns values that are uniform in [-limit, limit).
std::vector<float> RandomValues(int64_t count, uint32_t seed, float limit = 1.0f);

// Returns the view of the dense [rows, cols] matrix in `values`.
MatrixView<float> ViewOf(std::vector<float>& values, int64_t rows, int64_t cols);
MatrixView<const float> ViewOf(const std::vector<float>& values, int64_t rows, int64_t cols);

}  // namespace attendant
