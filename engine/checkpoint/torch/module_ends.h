// The keys of attendant.json for the layers before and after a stack of torch layers: a linear
// layer for the input, sinusoids of the positions, and a linear layer for the output.
#pragma once

#include <cstdint>
#include <string>

#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/files/sinusoids.h"
#include "engine/checkpoint/files/weight_binder.h"

namespace attendant {

inline constexpr char kSinusoidsName[] = "front.positions";

struct ModuleEnds {
  std::string input_projection;   // the name of a linear layer; empty if there is none
  std::string output_projection;  // likewise
  PoolingMode pooling = PoolingMode::kFirstToken;  // before the output projection
  Sinusoids sinusoids = Sinusoids::kNone;
  int64_t max_positions = 0;  // rows of the table of sinusoids
};

// Reads the optional keys input_projection; output_projection, with pooling; and sinusoids, with
// max_positions.
ModuleEnds ReadModuleEnds(ConfigReader& config);

// Adds the patch embedding and the classifier to a description of the layers.
void DescribeModuleEnds(const ModuleEnds& ends, WeightBinder& binder, ModelDescription& model);

// Binds the weight and returns true if it belongs to these layers; otherwise returns false. The
// table of sinusoids, kSinusoidsName, has no tensor to be bound to.
bool BindModuleEnd(const ModuleEnds& ends, const WeightSpec& spec, WeightBinder& binder);

}  // namespace attendant
