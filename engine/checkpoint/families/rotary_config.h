// The keys of config.json for rotary positions.
#pragma once

#include <cstdint>

#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/families/families.h"
#include "engine/checkpoint/files/problems.h"
#include "engine/model/rotary_shape.h"

namespace attendant {

// The names of layers with and without a window in newer configs.
inline constexpr char kLocalLayer[] = "sliding_attention";
inline constexpr char kGlobalLayer[] = "full_attention";

// Reads the rotation in layers with a window, if `is_local`, or in those without one: which columns
// of a head are turned, by the base, and how the angles are scaled for long sequences. Both are the
// same in families without Family::keys.local_rotary_theta.
RotaryShape ReadRotary(const Family& family, bool is_local, int64_t head_width,
                       ConfigReader& config, Problems& problems);

}  // namespace attendant
