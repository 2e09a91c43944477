// What attendant.json says of the layers before and behind a stack of torch layers: a linear layer
// for what comes in, sinusoids of positions, a linear layer for what goes out.
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
  // Column j of position p: sine for even j, else cosine, of p / 10000^(2 floor(j / 2) / E)
  // (Vaswani et al. 2017, section 3.5).
  kInterleaved,
  // Sines, then as many cosines, of p / 10000^(i / (E / 2 - 1)) (tensor2tensor).
  kHalves,
};

struct ModuleEnds {
  std::string input_projection;   // a linear layer's tensors up to ".weight"; empty: none
  std::string output_projection;  // the same
  PoolingMode pooling = PoolingMode::kFirstToken;  // before the output projection
  Sinusoids sinusoids = Sinusoids::kNone;
  int64_t max_positions = 0;  // of the sinusoids
};

// Reads the optional keys input_projection, output_projection with pooling, sinusoids with
// max_positions, and puts those that may be there into `keys`.
ModuleEnds ReadModuleEnds(ConfigReader& config, Keys& keys);

// Adds patch embedding and classifier to what is known of the layers.
void DescribeModuleEnds(const ModuleEnds& ends, WeightBinder& binder, ModelDescription& model);

// Binds the weight if it is one of the ends; else false.
bool BindModuleEnd(const ModuleEnds& ends, const WeightSpec& spec, WeightBinder& binder);

// [positions, width], row-major.
std::vector<float> MakeSinusoids(Sinusoids kind, int64_t positions, int64_t width);

// `weights` and the sinusoids beside them, if there are some.
std::unique_ptr<WeightSource> WithSinusoids(const ModuleEnds& ends, int64_t width,
                                            std::unique_ptr<WeightSource> weights);

}  // namespace attendant
