// What config.json says of rotary positions.
#pragma once

#include <cstdint>

#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/families/families.h"
#include "engine/checkpoint/files/problems.h"
#include "engine/model/model_description.h"

namespace attendant {

// The family's shape with what the config says: the base, perhaps scaled for longer sequences, how
// many columns of a head turn, and which make a pair.
RelativePositionShape ReadRotary(const Family& family, int64_t head_width, ConfigReader& config,
                                 Problems& problems);

// What newer configs call layers with and without a window.
inline constexpr char kLocalLayer[] = "sliding_attention";
inline constexpr char kGlobalLayer[] = "full_attention";

struct LayerThetas {
  float global;  // of layers without a window
  float local;
};

// Of a family whose layers have a window or none; `theta`: of both, if the config does not say.
LayerThetas ReadLayerThetas(const ConfigKeys& keys, float theta, ConfigReader& config,
                            Problems& problems);

}  // namespace attendant
