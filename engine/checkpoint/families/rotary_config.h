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

struct LayerRotations {
  float global_theta;  // for layers without a window
  float local_theta;   // for layers with a window
  float stretch;       // as RelativePositionShape::rotary_stretch, for both
};

// Reads the rotary bases of a family whose layers may have windows, and their common scaling.
// `shape` is what ReadRotary returned.
LayerRotations ReadLayerRotations(const Family& family, const RelativePositionShape& shape,
                                  ConfigReader& config, Problems& problems);

}  // namespace attendant
