// The keys of config.json for kinds of attention, and of blocks of a layer, that few families have.
#pragma once

#include <vector>

#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/families/families.h"
#include "engine/checkpoint/files/problems.h"
#include "engine/model/model_description.h"

namespace attendant {

// Reads the keys of disentangled attention. The kind is kNone if the config has no relative
// attention; the rest still says which products the scores would be the sum of.
RelativePositionShape ReadDisentangled(ConfigReader& config, Problems& problems);

// Returns the number of products that a score is the sum of, by which the score scale is corrected.
float ScoreTerms(const RelativePositionShape& shape);

// Sets the bottleneck of a layer, if the config has one, and the number of its feed-forward blocks.
void ReadBottleneck(ConfigReader& config, Problems& problems, LayerShape& layer);

// Gives layers a mixture of experts, if the config has experts.
void ReadMixture(const ConfigKeys& keys, ConfigReader& config, Problems& problems,
                 ModelDescription& model);

// Returns which layers have a window: those that `kinds`, a list with one entry for each layer,
// says, or `otherwise` if the config has no such list. `json` is the whole config.
std::vector<bool> ReadWindowedLayers(const Keys& kinds, const Json& json,
                                     std::vector<bool> otherwise, const ConfigReader& config,
                                     Problems& problems);

// Sets the window and pattern of block-sparse attention, if attention_type asks for it.
void ReadBlockPattern(ConfigReader& config, LayerShape& layer);

// Reads the convolution next to a layer, whose hidden size must be set. `taps` are the keys of its
// kernel size. Without a convolution the shape has 0 taps.
ConvolutionShape ReadConvolution(const Keys& taps, const LayerShape& layer, ConfigReader& config,
                                 Problems& problems);

}  // namespace attendant
