// The keys of attendant.json for the layers before and after a stack of torch layers: a linear
// layer for the input, sinusoids of the positions, and a linear layer for the output.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/files/problems.h"
#include "engine/checkpoint/files/weight_binder.h"
#include "engine/model/weight_source.h"

namespace attendant {

enum class Sinusoids {
  kNone,
  // Column j of position p is the sine for even j, else the cosine, of p / 10000^(2 floor(j / 2) /
  // E) (Vaswani et al. 2017, section 3.5).
  kInterleaved,
  // All sines, then all cosines, of p / 10000^(i / (E / 2 - 1)) (tensor2tensor).
  kHalves,
};

struct ModuleEnds {
  std::string input_projection;   // the name of a linear layer; empty if there is none
  std::string output_projection;  // likewise
  PoolingMode pooling = PoolingMode::kFirstToken;  // before the output projection
  Sinusoids sinusoids = Sinusoids::kNone;
  int64_t max_positions = 0;  // rows of the table of sinusoids
};

// Reads the optional keys input_projection; output_projection, with pooling; and sinusoids, with
// max_positions. Adds the keys that are allowed with them to `keys`.
ModuleEnds ReadModuleEnds(ConfigReader& config, Keys& keys);

// Adds the patch embedding and the classifier to a description of the layers.
void DescribeModuleEnds(const ModuleEnds& ends, WeightBinder& binder, ModelDescription& model);

// Binds the weight and returns true if it belongs to these layers; otherwise returns false.
bool BindModuleEnd(const ModuleEnds& ends, const WeightSpec& spec, WeightBinder& binder);

// Returns the table of sinusoids, [positions, width], row-major.
std::vector<float> MakeSinusoids(Sinusoids kind, int64_t positions, int64_t width);

// Returns `weights` with the sinusoids added, if there are any.
std::unique_ptr<WeightSource> WithSinusoids(const ModuleEnds& ends, int64_t width,
                                            std::unique_ptr<WeightSource> weights);

}  // namespace attendant
