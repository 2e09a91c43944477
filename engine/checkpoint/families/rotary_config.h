// The keys of config.json for rotary positions.
#pragma once

#include <cstdint>

#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/families/families.h"
#include "engine/checkpoint/files/problems.h"
#include "engine/model/model_description.h"

namespace attendant {

// Returns the family's shape with what the config says: the base, perhaps scaled for longer
// sequences, how many columns of a head are rotated, and which columns are pairs.
RelativePositionShape ReadRotary(const Family& family, int64_t head_width, ConfigReader& config,
                                 Problems& problems);

// The names of layers with and without a window in newer configs.
inline constexpr char kLocalLayer[] = "sliding_attention";
inline constexpr char kGlobalLayer[] = "full_attention";

struct LayerThetas {
  float global;  // for layers without a window
  float local;   // for layers with a window
};

// Reads the rotary bases of a family whose layers may have windows. `theta` is the default for
// both.
LayerThetas ReadLayerThetas(const ConfigKeys& keys, float theta, ConfigReader& config,
                            Problems& problems);

}  // namespace attendant
