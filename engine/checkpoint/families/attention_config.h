// What configs say about kinds of attention that few families have.
#pragma once

#include "engine/checkpoint/families/config_reader.h"
#include "engine/checkpoint/files/problems.h"
#include "engine/model/model_description.h"

namespace attendant {

// Without relative attention of any kind: kNone, which still remembers what scores what.
RelativePositionShape ReadDisentangled(ConfigReader& config, Problems& problems);

// Products that the scores are the sum of, which the scale takes into account.
float ScoreTerms(const RelativePositionShape& shape);

// Sets what a layer is between two linear layers, if it is, and its feed-forward blocks.
void ReadBottleneck(ConfigReader& config, Problems& problems, LayerShape& layer);

// Sets the window and the pattern of attention to blocks, if the config's attention_type says so.
void ReadBlockPattern(ConfigReader& config, LayerShape& layer);

// The convolution of so many places, if the config has any, in a layer whose hidden size is known.
ConvolutionShape ReadConvolution(const Keys& taps, const LayerShape& layer, ConfigReader& config,
                                 Problems& problems);

}  // namespace attendant
