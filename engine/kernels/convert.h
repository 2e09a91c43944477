// Conversions between float32 and the element types of requests and files.
#pragma once

#include <cstdint>

#include "engine/base/data_type.h"

namespace attendant {

// Converts `count` little-endian elements of the float type `from`, at any alignment, to float32.
// Rounds float64 to nearest even.
void ToFloat(DataType from, const void* source, int64_t count, float* target);

// Converts float32 to `to` (kFloat32, kFloat16 or kBFloat16) at any alignment. Rounds to nearest
// even and propagates infinity and NaN. Values beyond the range of float16 become infinite.
void FromFloat(const float* source, int64_t count, DataType to, void* target);

// Whether all values are finite.
bool AllFinite(const float* values, int64_t count);

}  // namespace attendant
